// A text as what it describes, in a frame of its own; and a piece of code of the conversation with its preview and its source.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ANSWER, Due } from "../lib/busy.ts";
import { type MessageKey, t } from "../lib/i18n.ts";
import type { PreviewKind } from "../lib/preview_kinds.ts";
import { fileText } from "../lib/readable.ts";
import { type Block, blockOf, type BlockPlace } from "../store/previews.ts";
import type { Conversation } from "../store/conversation.ts";
import { useApp } from "../ui/context.ts";
import { Icon, IconButton } from "../ui/icon.tsx";
import { Lines } from "../ui/lines.tsx";
import { PreviewFrame } from "./preview_frame.ts";

interface PreviewProps {
  kind: PreviewKind;
  text: string;
  name: string;
  /** More of it may come: what is wrong may be right in a moment. */
  isOpen?: boolean;
}

export function Preview({ kind, text, name, isOpen = false }: PreviewProps) {
  const app = useApp();
  const holder = useRef<HTMLDivElement>(null);
  const frame = useRef<PreviewFrame | null>(null);
  const [isNetworked, setNetworked] = useState(false);
  const [reason, setReason] = useState("");
  useLayoutEffect(() => {
    const made = frame.current = new PreviewFrame(holder.current!, {
      base: app.boot.urls.previews,
      title: t("previews.of", { name }),
      on: { shown: setReason, link: (url) => open(url, "_blank", "noopener,noreferrer") },
    });
    return () => made.dispose();
  }, []);
  useLayoutEffect(() => frame.current!.show({ kind, text, isNetworked }), [kind, text, isNetworked]);
  const mayReach = kind === "html" || kind === "svg";
  return (
    <>
      {reason && !isOpen && (
        <div class="preview-problem" role="alert">
          <p>{t("previews.failed")}</p>
          <details>
            <summary>{t("previews.details")}</summary>
            <pre dir="ltr">{reason}</pre>
          </details>
        </div>
      )}
      <div class="preview-stage" ref={holder} />
      {mayReach && (
        <p class="preview-network muted">
          <span>{t(isNetworked ? "previews.networked" : "previews.isolated")}</span>
          <button type="button" class="quiet" onClick={() => setNetworked(!isNetworked)}>
            {t(isNetworked ? "previews.isolate" : "previews.allow-network")}
          </button>
        </p>
      )}
    </>
  );
}

export type Face = "preview" | "source" | "versions";
const FACES: Record<Face, MessageKey> = {
  preview: "previews.preview",
  source: "previews.source",
  versions: "previews.versions",
};

/** Which face of a text is shown. */
export function Faces({ of, face, choose }: { of: readonly Face[]; face: Face; choose: (face: Face) => void }) {
  return (
    <div class="faces" role="group" aria-label={t("previews.faces")}>
      {of.map((each) => (
        <button key={each} type="button" aria-pressed={each === face} onClick={() => choose(each)}>
          {t(FACES[each])}
        </button>
      ))}
    </div>
  );
}

const PAUSE_MS = 300; // while it is written

/** A piece of code of a message, as it is now. */
function useBlock(conversation: Conversation, place: BlockPlace): Block {
  const [block, setBlock] = useState(() => blockOf(conversation, place));
  const [due] = useState(() => new Due(ANSWER));
  const revision = conversation.revision(place.messageId);
  const { isOpen } = block;
  useEffect(() => {
    const read = () => setBlock(blockOf(conversation, place));
    if (!isOpen) read();
    else if (!due.isSet) due.set(read, PAUSE_MS);
  }, [revision, place]);
  useEffect(() => () => due.clear(), []);
  return block;
}

/** `close`: back to the files. */
export function BlockPreview({ conversation, place, close }: {
  conversation: Conversation;
  place: BlockPlace;
  close: () => void;
}) {
  const app = useApp();
  const { text, isOpen } = useBlock(conversation, place);
  const [face, setFace] = useState<Face>("preview");
  const back = useRef<HTMLButtonElement>(null);
  useEffect(() => back.current?.focus(), []);
  const name = t(KINDS[place.kind]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    close();
  };
  return (
    <div class={face === "preview" ? "file-view is-preview" : "file-view"} onKeyDown={onKeyDown}>
      <div class="file-head">
        <button type="button" class="quiet" ref={back} onClick={close}>
          <Icon name="back" />
          {t("files.all-files")}
        </button>
        <IconButton icon="copy" label={t("files.copy-content")} onClick={() => app.copy(text)} />
      </div>
      <h2 class="file-title">{t("previews.from-conversation", { kind: name })}</h2>
      <Faces of={["preview", "source"]} face={face} choose={setFace} />
      {face === "preview" ? <Preview kind={place.kind} text={text} name={name} isOpen={isOpen} /> : (
        <Lines
          text={fileText(text)}
          label={t("files.content-of", { name })}
          language={SOURCES[place.kind]}
          firstLine={1}
          class="is-file"
        />
      )}
    </div>
  );
}

const KINDS: Record<PreviewKind, MessageKey> = {
  html: "previews.html",
  svg: "previews.svg",
  mermaid: "previews.mermaid",
  markdown: "previews.markdown",
  csv: "previews.csv",
  chart: "previews.chart",
};
const SOURCES: Record<PreviewKind, string> = {
  html: "html",
  svg: "xml",
  mermaid: "",
  markdown: "markdown",
  csv: "",
  chart: "json",
};
