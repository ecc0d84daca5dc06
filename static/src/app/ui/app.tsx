// The frame of the page: the list, what is read, the panel, and what lies over all of them.

import { useEffect, useLayoutEffect } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { Badge } from "./badge.tsx";
import { useApp } from "./context.ts";
import { ConversationView } from "./conversation_view.tsx";
import { DialogHost } from "./dialog_host.tsx";
import { bindKeys } from "./keys.ts";
import { lazy } from "./lazy.tsx";
import { NARROW, useMedia } from "./media.ts";
import { LiveRegion, NoticeRegion } from "./notices.tsx";
import { Sidebar } from "./sidebar.tsx";

const Panel = lazy(async () => (await import("../later/panel.ts")).Panel);
const SettingsPage = lazy(async () => (await import("../later/pages.ts")).SettingsPage);
const WorkView = lazy(async () => (await import("../later/pages.ts")).WorkView);
const ApprovalsPage = lazy(async () => (await import("../later/pages.ts")).ApprovalsPage);

export function AppView() {
  const app = useApp();
  follow(app.place);
  const { panel, conversation } = app;
  follow(conversation); // whether one may write in it
  useEffect(() => bindKeys(app), []);
  useLayoutEffect(() => { // before the effects of what is inside: they may give the focus to what shows by now
    document.body.dataset.view = app.place.view;
    document.body.dataset.sidebar = app.place.isSidebarHidden ? "hidden" : "shown";
  });
  const isPage = app.place.view === "approvals" || app.place.view === "settings" || app.place.view === "work";
  const isOpen = follow(panel).isOpen && app.place.view !== "settings" && app.place.view !== "work"; // nothing in it is about these
  const isCovered = useMedia(NARROW) && isOpen;
  const isReadOnly = conversation.instance.isReadOnly;
  return (
    <>
      <Badge />
      <SkipLink hasField={!isPage && !isReadOnly} />
      <main class="columns">
        <Sidebar isCovered={isCovered} />
        {app.place.view === "settings" && <SettingsPage />}
        {app.place.view === "work" && <WorkView isCovered={isCovered} />}
        {app.place.view === "approvals" && <ApprovalsPage isCovered={isCovered} />}
        {!isPage && <ConversationView isCovered={isCovered} />}
        {isOpen && <Panel />}
        <NoticeRegion />
      </main>
      <DialogHost />
      <LiveRegion />
    </>
  );
}

/** Past the list, to where one writes; where that is not possible, to what there is to read. */
function SkipLink({ hasField }: { hasField: boolean }) {
  const place = hasField ? "composer-input" : "scroller";
  return (
    // The address alone moves the focus only where the browser is not busy.
    <a
      class="skip"
      href={`#${place}`}
      onClick={() => document.getElementById(place)?.focus()}
    >
      {t(hasField ? "common.skip-to-field" : "common.skip-to-content")}
    </a>
  );
}
