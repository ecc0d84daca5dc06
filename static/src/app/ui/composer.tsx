// Where one writes. The field grows, takes files, offers commands, and has a button to send and one to stop.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { fileSize } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { Attachment } from "../store/attachments.ts";
import { type CommandInfo, commandOf, commandsOf, offered } from "../store/commands.ts";
import type { Delivery } from "../store/types.ts";
import { useApp } from "./context.ts";
import { Icon, IconButton } from "./icon.tsx";
import { lazy } from "./lazy.tsx";
import { ModelPicker } from "./model_picker.tsx";
import { MenuButton } from "./popover.tsx";

const NextPrice = lazy(async () => (await import("../later/views.ts")).NextPrice);
const CommandList = lazy(async () => (await import("../later/views.ts")).CommandList);

const isTouch = () => matchMedia("(pointer: coarse)").matches;

export function ComposerView() {
  const app = useApp();
  follow(app.place);
  const composer = follow(app.composer);
  const isRunning = Boolean(follow(app.conversation).running);
  const { isEmpty } = composer;
  follow(composer.attachments);
  const submit = (event: Event) => {
    event.preventDefault();
    composer.submit();
  };
  const { delivery } = app.agentOf(app.conversation.instance);
  const sendLabel = t(
    composer.editing ? "composer.send-edit" : isRunning ? DELIVERIES[delivery].label : "composer.send",
  );
  return (
    <form id="composer" class="composer" aria-label={t("composer.message")} onSubmit={submit}>
      <div class="composer-box">
        {composer.editing && <EditBar />}
        <Commands />
        <Files />
        <Field />
        <div class="composer-row">
          <Attach />
          <ModelPicker />
          <p id="composer-keys" class="keys">{t("composer.keys")}</p>
          {!isEmpty && <NextPrice />}
          {isRunning && (
            <button
              id="stop"
              type="button"
              class="round is-stop"
              aria-label={t("composer.stop")}
              title={t("composer.stop-title")}
              onClick={() => app.stop()}
            >
              <Icon name="stop" />
            </button>
          )}
          {!(isRunning && isEmpty) && (
            <button
              id="send"
              type="submit"
              class="round"
              aria-label={sendLabel}
              title={sendLabel}
              aria-disabled={isEmpty}
            >
              <Icon name="send" />
            </button>
          )}
          {isRunning && !isEmpty && !composer.editing && <OtherWays usual={delivery} />}
        </div>
      </div>
      <p id="composer-note" class="composer-note" role="alert" hidden={!composer.note}>{composer.note}</p>
    </form>
  );
}

const DELIVERIES = {
  steer: { icon: "right", label: "composer.steer" },
  queue: { icon: "down", label: "composer.send-after" },
  interrupt: { icon: "stop", label: "composer.stop-and-send" },
} as const;

/** Beside the button that sends, while an answer is written: what else the message may do. */
function OtherWays({ usual }: { usual: Delivery }) {
  const { composer } = useApp();
  const label = t("composer.other-ways");
  const others = (Object.keys(DELIVERIES) as Delivery[]).filter((delivery) => delivery !== usual);
  return (
    <MenuButton
      label={label}
      button={{
        id: "send-menu",
        class: "icon-button",
        "aria-label": label,
        title: label,
        children: <Icon name="down-small" />,
      }}
      entries={() =>
        others.map((delivery) => ({
          icon: DELIVERIES[delivery].icon,
          label: t(DELIVERIES[delivery].label),
          run: () => composer.submit(delivery),
        }))}
    />
  );
}

function EditBar() {
  const { composer } = useApp();
  return (
    <div id="edit-bar" class="edit-bar">
      <span>{t(composer.editing?.waiting ? "composer.editing-waiting" : "composer.editing")}</span>
      <button type="button" id="edit-cancel" class="quiet" onClick={() => composer.cancelEdit()}>
        {t("common.cancel")}
      </button>
    </div>
  );
}

/** Above the field, while a slash is typed: the commands there are. */
function Commands() {
  const app = useApp();
  follow(app.place);
  const { text } = follow(app.composer);
  const commands = offered(text, commandsOf(app.agentOf(app.conversation.instance)));
  return (
    <div id="commands" class="commands" aria-live="polite">
      {/^\/[^\n]{0,60}$/.test(text) && <CommandList commands={commands} typed={text} />}
    </div>
  );
}

/** Take the first command that what is typed begins; null when it is whole already, or there is none. */
function completionOf(text: string, own: readonly CommandInfo[]): CommandInfo | null {
  const [first] = offered(text, own);
  return first && text !== first.usage && !commandOf(text) ? first : null;
}

function Field() {
  const app = useApp();
  const composer = follow(app.composer);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const { style } = field.current!;
    style.setProperty("height", "auto");
    style.setProperty("height", `${field.current!.scrollHeight}px`);
  }, [composer.text]);
  useEffect(() => {
    const element = field.current!;
    if (!composer.focusWishes || (isTouch() && !composer.editing)) return;
    element.focus();
    element.setSelectionRange(element.value.length, element.value.length);
  }, [composer.focusWishes]);
  const onPaste = (event: ClipboardEvent) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (!files.length) {
      if (composer.takePasted(event.clipboardData?.getData("text/plain") ?? "")) event.preventDefault();
      return;
    }
    event.preventDefault();
    composer.addFiles(files);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing || event.keyCode === 229) return; // an input method is at work
    const isPlain = !event.shiftKey && !event.altKey && !event.ctrlKey && !event.metaKey;
    if (event.key === "Enter" && (isPlain || event.ctrlKey || event.metaKey)) {
      if (isPlain && isTouch()) return; // the phone's key breaks the line; the button sends
      event.preventDefault();
      const command = completionOf(composer.text, commandsOf(app.agentOf(app.conversation.instance)));
      if (command) composer.fill(`${command.usage} `);
      else if (composer.take && isPlain) composer.take();
      else composer.submit();
    } else if (event.key === "ArrowDown" && isPlain && composer.text.startsWith("/")) {
      const first = document.querySelector<HTMLElement>("#commands .command");
      if (first) event.preventDefault();
      first?.focus();
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (!composer.cancelEdit() && app.conversation.running) app.stop();
    } else if (event.key === "ArrowUp" && isPlain && composer.isEmpty && composer.text === "") {
      if (app.sending.editLast()) event.preventDefault();
    }
  };
  return (
    <textarea
      id="composer-input"
      ref={field}
      rows={1}
      placeholder={t("composer.placeholder")}
      aria-label={t("composer.message")}
      aria-describedby="composer-keys"
      dir="auto"
      autocomplete="off"
      value={composer.text}
      onInput={(event) => {
        composer.type(event.currentTarget.value);
        app.sayHere(!composer.isEmpty);
      }}
      onKeyDown={onKeyDown}
      onPaste={onPaste}
    />
  );
}

function Attach() {
  const { composer } = useApp();
  const input = useRef<HTMLInputElement>(null);
  const take = () => {
    composer.addFiles([...(input.current!.files ?? [])]);
    input.current!.value = "";
  };
  return (
    <>
      <IconButton id="attach" icon="clip" label={t("composer.attach")} onClick={() => input.current!.click()} />
      <input id="file-input" type="file" multiple hidden aria-label={t("composer.files")} ref={input} onChange={take} />
    </>
  );
}

function Files() {
  const { composer } = useApp();
  const { items } = follow(composer.attachments);
  return (
    <ul id="composer-files" class="composer-files" aria-label={t("composer.files-to-send")} hidden={!items.length}>
      {items.map((item) => (
        <FileChip
          key={item.id}
          item={item}
          remove={() => composer.removeFile(item.id)}
          asText={() => composer.pasteAsText(item.id)}
        />
      ))}
    </ul>
  );
}

const isPicture = (mediaType = ""): boolean => /^image\/(png|jpeg|gif|webp|avif)$/.test(mediaType);

function FileChip({ item, remove, asText }: { item: Attachment; remove: () => void; asText: () => void }) {
  const { stored, state, name } = item;
  return (
    <li class={`file-chip is-${state}`}>
      {stored && state === "ready" && isPicture(stored.media_type)
        ? <img class="file-thumbnail" src={stored.url} alt="" />
        : <Icon name="file" />}
      <span class="file-name">{name}</span>
      {state === "uploading" && (
        <progress max={1} value={item.progress} aria-label={t("composer.uploading", { name })} />
      )}
      {state === "failed" && <span class="is-error">{item.error}</span>}
      {(state === "ready" || state === "waiting") && <span class="muted">{fileSize(item.size)}</span>}
      {state === "waiting" && <span class="muted">{t("composer.file-waits")}</span>}
      {item.pasted && <button type="button" class="quiet" onClick={asText}>{t("composer.paste-as-text")}</button>}
      {stored?.note && <span class="file-note">{stored.note}</span>}
      <IconButton icon="close" label={t("composer.remove-file", { name })} onClick={remove} />
    </li>
  );
}
