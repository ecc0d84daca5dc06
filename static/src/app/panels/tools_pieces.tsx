// Pieces that the views of servers and of extensions share.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { messageOf } from "../net/api.ts";
import type { Level } from "../net/tools_api.ts";
import { toolsPlace } from "../store/tools_place.ts";
import { Icon } from "../ui/icon.tsx";
import { keepFocusIn } from "../ui/return_focus.ts";

interface ItemProps {
  title: string;
  /** Where the way back leads, if not to the lists. */
  backTo?: string;
  close: () => void;
  children: ComponentChildren;
}

/** An item or a form in the place of the lists, with the way back. */
export function Item({ title, backTo, close, children }: ItemProps) {
  const back = useRef<HTMLButtonElement>(null);
  useEffect(() => back.current?.focus(), []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    close();
  };
  return (
    <div class="tools-item" onKeyDown={onKeyDown}>
      <p class="file-head">
        <button type="button" class="quiet" ref={back} onClick={close}>
          <Icon name="back" />
          <bdi>{backTo ? withoutTricks(backTo) : t("servers.all-tools")}</bdi>
        </button>
      </p>
      <h2 class="tools-title">
        <bdi>{withoutTricks(title)}</bdi>
      </h2>
      {children}
    </div>
  );
}

/** Do something on the server and read again: why it failed, and whether it is under way. */
export function useAttempt({ reading }: { reading: { again(): Promise<void> } }, panel = "panel-tools") {
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const attempt = async (verb: () => Promise<unknown>): Promise<boolean> => {
    const pressed = document.activeElement as HTMLElement | null;
    setBusy(true);
    setProblem("");
    let isDone = true;
    try {
      await verb();
    } catch (error) {
      setProblem(messageOf(error));
      isDone = false;
    }
    await reading.again();
    setBusy(false);
    setTimeout(() => {
      if (document.activeElement === document.body && pressed?.isConnected) pressed.focus({ preventScroll: true });
      keepFocusIn(document.getElementById(panel)); // the button may be there no more
    });
    return isDone;
  };
  return { problem, setProblem, isBusy, attempt };
}

/** A part that is made when it is opened. */
export function Part({ title, note, children }: { title: string; note?: string; children: () => ComponentChildren }) {
  const [wasOpened, setOpened] = useState(false);
  return (
    <details class="context-piece" onToggle={(event) => event.currentTarget.open && setOpened(true)}>
      <summary>
        <span class="context-label">{title}</span>
        {note && <span class="context-tokens">{note}</span>}
        <Icon name="chevron" />
      </summary>
      <div class="tools-part">{wasOpened && children()}</div>
    </details>
  );
}

/** For which conversations something is added. */
export function LevelChoice({ form, instanceId, level, choose }: {
  form: string;
  instanceId: string;
  level: Level;
  choose: (level: Level) => void;
}) {
  if (!instanceId) return <p class="muted">{t("servers.for-all-only")}</p>;
  const choice = (value: Level, text: string) => (
    <label class="ticked">
      <input
        type="radio"
        class="tick"
        name={`${form}-level`}
        checked={level === value}
        onChange={() => choose(value)}
      />
      <span>{text}</span>
    </label>
  );
  return (
    <fieldset class="tools-levels">
      <legend class="field-label">{t("servers.for-whom")}</legend>
      {choice("instance", t("servers.for-this"))}
      {choice("user", t("servers.for-all"))}
    </fieldset>
  );
}

/** What is written in a field of a form; it outlives the view. */
export function useDraft(form: string, field: string, first = ""): [string, (text: string) => void] {
  const [text, setText] = useState(() => toolsPlace.draft(form, field) || first);
  const write = (next: string) => {
    toolsPlace.setDraft(form, field, next);
    setText(next);
  };
  return [text, write];
}
