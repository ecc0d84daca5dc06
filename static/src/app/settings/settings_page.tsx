// The settings of a person, in the frame of the page: a column of sections and the one that is open. On a narrow page the sections
// are a view of their own.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { useApp } from "../ui/context.ts";
import { FollowLink } from "../ui/follow_link.tsx";
import { ListButtons } from "../ui/head.tsx";
import { Icon } from "../ui/icon.tsx";
import { lazy } from "../ui/lazy.tsx";
import { NARROW, useMedia } from "../ui/media.ts";
import { moveFocus } from "../ui/popover.tsx";
import { sectionNamed, SECTIONS, type SettingsSection } from "./registry.ts";

const VIEWS = new Map(SECTIONS.map((section) => [section.name, lazy<object>(section.load)]));

export function SettingsPage() {
  const app = useApp();
  follow(app.place);
  const isNarrow = useMedia(NARROW);
  const wanted = app.place.section || (isNarrow ? "" : SECTIONS[0].name);
  const section = sectionNamed(wanted);
  const title = section ? t(section.label) : t("list.settings");
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => app.place.nameSection(section ? title : ""), [title]);
  useEffect(() => heading.current?.focus(), [app.place.section, isNarrow]);
  const isList = isNarrow && !wanted;
  return (
    <section id="main" class="main settings" aria-labelledby="title">
      <header class="main-head">
        {isNarrow && !isList ? <BackToSections /> : <ListButtons />}
        <div class="head-title">
          <h1
            id="title"
            class={isNarrow && !isList ? "visually-hidden" : undefined}
            tabIndex={-1}
            ref={isList ? heading : undefined}
          >
            {t("list.settings")}
          </h1>
          {isNarrow && !isList && <h2 tabIndex={-1} ref={heading}>{title}</h2>}
        </div>
      </header>
      <div class="settings-body">
        {(isList || !isNarrow) && <Sections current={section} isAlone={isList} />}
        {!isList && (
          <div id="scroller" class="settings-section" tabIndex={0} role="region" aria-label={title} key={wanted}>
            {!isNarrow && <h2 tabIndex={-1} ref={heading}>{title}</h2>}
            <View name={wanted} />
          </div>
        )}
      </div>
    </section>
  );
}

function View({ name }: { name: string }) {
  const Section = VIEWS.get(name);
  if (Section) return <Section />;
  return <p role="alert">{t("settings.no-section", { name })}</p>;
}

/** The links to all sections; arrow keys go from one to the next. */
function Sections({ current, isAlone }: { current: SettingsSection | undefined; isAlone: boolean }) {
  const app = useApp();
  const list = useRef<HTMLElement>(null);
  const onKeyDown = (event: KeyboardEvent) => moveFocus(event, [...list.current!.querySelectorAll("a")]);
  return (
    <nav
      id={isAlone ? "scroller" : undefined} // where the link past the list leads
      class="settings-list"
      tabIndex={-1}
      aria-label={t("list.settings")}
      ref={list}
      onKeyDown={onKeyDown}
    >
      <ul>
        {SECTIONS.map(({ name, label, icon }) => (
          <li key={name}>
            <FollowLink
              href={app.router.address({ page: "settings", section: name })}
              data-section={name}
              aria-current={name === current?.name ? "page" : undefined}
              go={() => app.place.showSettings(name)}
            >
              <Icon name={icon} />
              {t(label)}
            </FollowLink>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function BackToSections() {
  const app = useApp();
  return (
    <FollowLink
      class="icon-button"
      href={app.router.address({ page: "settings", section: "" })}
      aria-label={t("settings.all")}
      title={t("settings.all")}
      go={() => app.place.showSettings("")}
    >
      <Icon name="back" />
    </FollowLink>
  );
}
