// The panel beside the conversation: tabs, opening and closing, where the focus goes. Each view is loaded when it is opened.

import { type ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { useApp } from "../ui/context.ts";
import { IconButton } from "../ui/icon.tsx";
import { NARROW, useMedia } from "../ui/media.ts";
import { type PanelEntry, type PanelProps, panelsOf } from "./registry.ts";

export function Panel() {
  const app = follow(useApp());
  const panel = follow(app.panel);
  const { conversation } = app;
  const element = useRef<HTMLElement>(null);
  const isAlone = useMedia(NARROW);
  useEffect(() => {
    if (panel.focusWishes) element.current?.querySelector<HTMLElement>("[role=tab][aria-selected=true]")?.focus();
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
  const panels = panelsOf(conversation.instance);
  const entry = panels.find((item) => item.name === panel.view) ?? panels[0];
  return (
    <aside id="panel" class="panel" aria-label={t("common.panel")} ref={element} onKeyDown={onKeyDown}>
      {isAlone && <h1 class="visually-hidden">{t("common.panel")}</h1>} {/* all there is to see then */}
      <header class="panel-head">
        <Tabs panels={panels} selected={entry.name} select={(name) => panel.select(name)} />
        <IconButton icon="close" label={t("panel.close")} onClick={close} />
      </header>
      <div
        id={`panel-${entry.name}`}
        class="panel-body"
        role="tabpanel"
        aria-labelledby={`tab-${entry.name}`}
        tabIndex={0}
        key={entry.name}
      >
        <View entry={entry} conversation={conversation} key={`${conversation.instance.id} ${conversation.sessionId}`} />
      </div>
    </aside>
  );
}

interface TabsProps {
  panels: readonly PanelEntry[];
  selected: string;
  select: (name: string) => void;
}

function Tabs({ panels, selected, select }: TabsProps) {
  const onKeyDown = (event: KeyboardEvent) => {
    const isRightToLeft = document.dir === "rtl";
    const step = { ArrowRight: isRightToLeft ? -1 : 1, ArrowLeft: isRightToLeft ? 1 : -1 }[event.key];
    const at = panels.findIndex((entry) => entry.name === selected);
    const to = { Home: 0, End: panels.length - 1 }[event.key] ??
      (step === undefined ? undefined : (at + step + panels.length) % panels.length);
    if (to === undefined) return;
    event.preventDefault();
    select(panels[to].name);
    document.getElementById(`tab-${panels[to].name}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={t("common.panel")} onKeyDown={onKeyDown}>
      {panels.map(({ name, label }) => (
        <button
          key={name}
          id={`tab-${name}`}
          type="button"
          role="tab"
          aria-controls={`panel-${name}`}
          aria-selected={name === selected}
          tabIndex={name === selected ? 0 : -1}
          onClick={() => select(name)}
        >
          {t(label)}
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
      <p class="is-error" role="alert">{text}</p>
      <p class="panel-actions">
        <button type="button" class="button" onClick={again}>{t("common.try-again")}</button>
      </p>
    </>
  );
}
