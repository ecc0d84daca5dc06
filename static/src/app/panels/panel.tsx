// The panel beside the conversation: tabs, opening and closing, where the focus goes. Each view is loaded when it is opened.

import { type ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { useApp } from "../ui/context.ts";
import { IconButton } from "../ui/icon.tsx";
import { NARROW, useMedia } from "../ui/media.ts";
import { Problem } from "../ui/problem.tsx";
import { GROUPS, type PanelEntry, panelOf, type PanelProps, panelsOf } from "./registry.ts";

export function Panel() {
  const app = useApp();
  follow(app.place);
  const panel = follow(app.panel);
  const { conversation } = app;
  const element = useRef<HTMLElement>(null);
  const isNarrow = useMedia(NARROW);
  const last = useRef(new Map<string, string>()); // the view of each group that was shown last
  useEffect(() => {
    const shown = element.current?.querySelectorAll<HTMLElement>("[role=tab][aria-selected=true]");
    if (panel.focusWishes && shown?.length) shown[shown.length - 1].focus(); // the view's, of a group with several
  }, [panel.focusWishes]);
  if (!panel.isOpen) return null;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    close();
  };
  const close = () => {
    panel.close();
    // The button in the head or, where the list is all that is seen, the menu that also opens it.
    const openers = ["panel-toggle", "user-menu"].map((id) => document.getElementById(id));
    setTimeout(() => openers.find((opener) => opener?.offsetParent)?.focus()); // on a phone they are inert until then
  };
  const { instance } = conversation;
  const threads = { isRoot: app.threads.keeps(instance), isThread: app.threads.isThread(instance) };
  const panels = panelsOf(instance, threads);
  const entry = panelOf(panels, panel.view);
  const groups = GROUPS.filter((group) => panels.some((item) => item.group === group));
  const views = panels.filter((item) => item.group === entry.group);
  const isAlone = views.length === 1;
  const toGroup = (group: string) => {
    const found = panels.filter((item) => item.group === group);
    panel.select((found.find(({ name }) => name === last.current.get(group)) ?? found[0]).name);
  };
  last.current.set(entry.group, entry.name);
  const body = (
    <div
      id={`panel-${entry.name}`}
      class="panel-body"
      role="tabpanel"
      aria-labelledby={isAlone ? `tab-group-${entry.group}` : `tab-${entry.name}`}
      tabIndex={0}
      key={entry.name}
    >
      <View entry={entry} conversation={conversation} key={`${instance.id} ${conversation.sessionId}`} />
    </div>
  );
  return (
    <aside id="panel" class="panel" aria-label={t("common.panel")} ref={element} onKeyDown={onKeyDown}>
      {isNarrow && <h1 class="visually-hidden">{t("common.panel")}</h1>} {/* all there is to see then */}
      <header class="panel-head">
        <Tabs
          label={t("common.panel")}
          tabs={groups.map((group) => ({ id: `group-${group}`, name: group, text: t(GROUP_LABELS[group]) }))}
          controls={isAlone ? `panel-${entry.name}` : "panel-group"}
          selected={entry.group}
          select={toGroup}
        />
        <IconButton icon="close" label={t("panel.close")} onClick={close} />
      </header>
      {isAlone
        ? body
        : (
          <div id="panel-group" class="panel-group" role="tabpanel" aria-labelledby={`tab-group-${entry.group}`}>
            <Tabs
              class="is-inner"
              label={t(GROUP_LABELS[entry.group])}
              tabs={views.map(({ name, label }) => ({ id: name, name, text: t(label) }))}
              controls={`panel-${entry.name}`}
              selected={entry.name}
              select={(name) => panel.select(name)}
            />
            {body}
          </div>
        )}
    </aside>
  );
}

const GROUP_LABELS = { files: "panel.files", work: "panel.work", about: "panel.about" } as const;

interface Tab {
  id: string;
  name: string;
  text: string;
}

interface TabsProps {
  label: string;
  tabs: readonly Tab[];
  /** Id of what the selected one shows. */
  controls: string;
  selected: string;
  select: (name: string) => void;
  class?: string;
}

function Tabs({ label, tabs, controls, selected, select, class: className = "" }: TabsProps) {
  const onKeyDown = (event: KeyboardEvent) => {
    const isRightToLeft = document.dir === "rtl";
    const step = { ArrowRight: isRightToLeft ? -1 : 1, ArrowLeft: isRightToLeft ? 1 : -1 }[event.key];
    const at = tabs.findIndex(({ name }) => name === selected);
    const to = { Home: 0, End: tabs.length - 1 }[event.key] ??
      (step === undefined ? undefined : (at + step + tabs.length) % tabs.length);
    if (to === undefined) return;
    event.preventDefault();
    select(tabs[to].name);
    document.getElementById(`tab-${tabs[to].id}`)?.focus();
  };
  return (
    <div class={`tabs ${className}`.trim()} role="tablist" aria-label={label} onKeyDown={onKeyDown}>
      {tabs.map(({ id, name, text }) => (
        <button
          key={id}
          id={`tab-${id}`}
          type="button"
          role="tab"
          aria-controls={name === selected ? controls : undefined}
          aria-selected={name === selected}
          tabIndex={name === selected ? 0 : -1}
          onClick={() => select(name)}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

const loaded = new Map<string, ComponentType<PanelProps>>();

function View({ entry, conversation }: PanelProps & { entry: PanelEntry }) {
  const [error, setError] = useState("");
  const [, setLoaded] = useState("");
  const Component = loaded.get(entry.name);
  useEffect(() => {
    if (Component || error) return;
    entry.load().then((component) => {
      loaded.set(entry.name, component);
      setLoaded(entry.name);
    }, () => setError(t("panel.not-loaded")));
  }, [entry.name, error]);
  if (Component) return <Component conversation={conversation} />;
  if (!error) return <p class="muted">{t("common.loading")}</p>;
  return <Failure text={error} again={() => setError("")} />;
}

/** Why a view shows nothing, and a way to try again. */
export function Failure({ text, again }: { text: string; again: () => void }) {
  return (
    <>
      <Problem text={text} />
      <p class="panel-actions">
        <button type="button" class="button" onClick={again}>{t("common.try-again")}</button>
      </p>
    </>
  );
}
