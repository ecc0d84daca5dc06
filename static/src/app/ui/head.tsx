// Above the conversation: what it is called, who answers, and what one can do with it.

import { useEffect, useRef } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { isOwn } from "../store/instances.ts";
import { HeadAgent } from "./agent_picker.tsx";
import { useApp } from "./context.ts";
import { conversationEntries } from "./conversation_menu.tsx";
import { FollowLink } from "./follow_link.tsx";
import { Icon, IconButton } from "./icon.tsx";
import { lazy } from "./lazy.tsx";
import { MenuButton } from "./popover.tsx";

const ProjectChip = lazy(async () => (await import("../later/views.ts")).ProjectChip);
const HistoriesButton = lazy(async () => (await import("../later/views.ts")).HistoriesButton);

/** Leads back to the list: on a narrow page another view, on a wide one the list that was put away. */
export function ListButtons() {
  const app = useApp();
  follow(app.place);
  const show = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (document.activeElement === document.body) show.current?.focus(); // the list had it, and was put away
  }, [app.place.isSidebarHidden]);
  return (
    <>
      <FollowLink
        class="icon-button only-narrow"
        data-link="list"
        href={app.router.base}
        aria-label={t("list.all")}
        title={t("list.all")}
        go={() => app.place.showList()}
      >
        <Icon name="back" />
      </FollowLink>
      {app.place.isSidebarHidden && (
        <IconButton
          id="sidebar-show"
          buttonRef={show}
          class="only-wide"
          icon="sidebar"
          label={t("list.show")}
          aria-expanded={false}
          onClick={() => app.place.toggleSidebar()}
        />
      )}
    </>
  );
}

export function Head() {
  const app = useApp();
  follow(app.place);
  const { instance } = follow(app.conversation);
  const panel = follow(app.panel);
  const title = app.threads.titleOf(instance);
  const isStored = instance.id !== "";
  const more = t("conversation.more");
  return (
    <header class="main-head">
      <ListButtons />
      <div class="head-title">
        <h1 id="title" dir="auto" title={title}>{title}</h1>
        <HeadAgent />
        {instance.projectId && <ProjectChip />}
      </div>
      {instance.id && instance.keepsSessions && isOwn(instance) && <HistoriesButton />}
      {instance.isNew && !app.threads.keeps(instance) && (
        <button
          id="temporary"
          type="button"
          class="button"
          aria-pressed={instance.isTemporary}
          onClick={() => app.conversation.update({ isTemporary: !instance.isTemporary })}
        >
          {t("temporary.switch")}
        </button>
      )}
      {isStored && !instance.parentId && !instance.isTemporary && <ShareButton />}
      {isStored && (
        <IconButton
          id="find-open"
          class="only-wide"
          icon="search"
          label={t("conversation.find")}
          aria-expanded={app.place.isFinding}
          aria-controls="find-bar"
          onClick={() => app.place.setFinding(!app.place.isFinding)}
        />
      )}
      {isStored && (
        <MenuButton
          label={more}
          button={{
            id: "conversation-more",
            class: "icon-button",
            "aria-label": more,
            title: more,
            children: <Icon name="more" />,
          }}
          entries={() => conversationEntries(app, app.conversation.instance, () => app.place.setFinding(true))}
        />
      )}
      {isStored && <NewLink />}
      <IconButton
        id="panel-toggle"
        icon="panel"
        label={t("common.panel")}
        aria-expanded={panel.isOpen}
        aria-controls="panel"
        onClick={() => panel.toggle()}
      />
    </header>
  );
}

/** Who is in the conversation, and for its owner who else may be. On a phone the menu has it until there are others. */
function ShareButton() {
  const app = useApp();
  const { items } = follow(app.people);
  const label = items.length > 1 ? t("conversation.people", { count: items.length }) : t("conversation.share");
  return (
    <button
      id="share"
      type="button"
      class={`icon-button ${items.length > 1 ? "" : "only-wide"}`}
      aria-label={label}
      title={label}
      onClick={() => app.share()}
    >
      <Icon name="people" />
      {items.length > 1 && <span aria-hidden="true">{items.length}</span>}
    </button>
  );
}

/** For a page where the list, and "New" with it, is out of sight. */
function NewLink() {
  const app = useApp();
  follow(app.place);
  return (
    <FollowLink
      class={`icon-button ${app.place.isSidebarHidden ? "" : "only-narrow"}`.trim()}
      data-link="new"
      href={app.router.address({ page: "new", agent: "" })}
      aria-label={t("conversation.new")}
      title={t("conversation.new")}
      go={() => app.place.newConversation()}
    >
      <Icon name="plus" />
    </FollowLink>
  );
}
