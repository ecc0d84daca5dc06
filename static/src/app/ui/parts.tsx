// The parts of a message, each by its kind: text, thoughts, files, tool calls, and the seam of an answer that was taken up again.

import { useLayoutEffect, useRef } from "preact/hooks";
import { type Citations, citationsOf } from "../lib/citations.ts";
import { timeLabel } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { renderPlain } from "../lib/plain.ts";
import { follow } from "../lib/store.ts";
import { isSettled, isTool, RESUMED, STEER } from "../store/fold.ts";
import { askedWithin, longRuns, type Run } from "../store/runs.ts";
import type { DataPart, FilePart, Message, Part, TextPart, ToolPart } from "../store/types.ts";
import { Files } from "./files.tsx";
import { lazy } from "./lazy.tsx";
import { LiveText } from "./live_text.tsx";
import type { Opened } from "./message.tsx";
import type { Parts } from "./parts_context.ts";
import { Reasoning } from "./reasoning.tsx";
import { Sources } from "./sources.tsx";
import { ToolCall } from "./tool_call.tsx";
import { ToolRun } from "./tool_run.tsx";

const InnerQuestions = lazy(async () => (await import("../later/calls.ts")).InnerQuestions);
const RunCards = lazy(async () => (await import("../later/calls.ts")).RunCards);

interface Props {
  context: Parts;
  message: Message;
  isLast: boolean;
  opened: Opened;
}

const MOST_REPLACED = 120;
const keyOf = (part: Part, index: number): string => `${index} ${isTool(part) ? part.toolCallId : part.type}`;

export function MessageParts(props: Props) {
  const { message } = props;
  const { parts } = message;
  const runs = new Map(longRuns(parts).map((run) => [run.first, run]));
  const inRuns = new Set([...runs.values()].flatMap((run) => run.parts as Part[]));
  const citations = citesOf(message);
  return (
    <>
      {parts.map((part, index) => {
        const run = runs.get(index);
        const key = keyOf(part, index);
        if (run) return <RunOfCalls key={`run ${key}`} {...props} run={run} />;
        if (inRuns.has(part)) return null;
        if (part.type === "file") return files(parts, index, key, props);
        return <PartView key={key} {...props} part={part} citations={citations} />;
      })}
      {citations.sources.length > 0 && <Sources sources={citations.sources} />}
    </>
  );
}

const NOTHING_CITED: Citations = { sources: [], marked: new Map() };

/** Most messages cite nothing, and one that is being written is asked with each chunk. */
function citesOf({ role, parts }: Message): Citations {
  const cites = (part: Part) => part.type.startsWith("source-") || ("citations" in part && part.citations);
  return role === "assistant" && parts.some(cites) ? citationsOf({ parts }) : NOTHING_CITED;
}

/** Files that follow each other stand in one row. */
function files(parts: readonly Part[], index: number, key: string, { context }: Props) {
  if (parts[index - 1]?.type === "file") return null;
  const end = parts.findIndex((part, at) => at > index && part.type !== "file");
  const row = parts.slice(index, end < 0 ? undefined : end) as FilePart[];
  return <Files key={key} parts={row} base={context.app.boot.urls.files} />;
}

function PartView({ part, citations, ...props }: Props & { part: Part; citations: Citations }) {
  const { context, message } = props;
  if (isTool(part)) {
    return (
      <>
        <ToolCall {...props} part={part} />
        <Within context={context} parts={[part]} />
      </>
    );
  }
  if (part.type === "text") {
    const text = part as TextPart;
    return message.role === "assistant"
      ? (
        <LiveText
          text={citations.marked.get(text) ?? text.text}
          isLive={message.isLive && text.state !== "done"}
          paint={context.reader.paint}
          sources={citations.sources}
        />
      )
      : <PlainText text={text.text} />;
  }
  if (part.type === "reasoning") return <Reasoning part={part} isLive={message.isLive} paint={context.reader.paint} />;
  if (part.type === STEER) return <Steered data={(part as DataPart).data} base={context.app.boot.urls.files} />;
  if (part.type === RESUMED) return <Seam data={(part as DataPart).data} />;
  return null; // steps, sources (they stand together), data for other clients
}

function RunOfCalls({ run, ...props }: Props & { run: Run }) {
  return (
    <>
      <ToolRun parts={run.parts} isLive={props.message.isLive} opened={props.opened}>
        {run.parts.map((part: ToolPart) => <ToolCall key={part.toolCallId} {...props} part={part} />)}
      </ToolRun>
      <Within context={props.context} parts={run.parts} />
    </>
  );
}

/** What these calls have others do, and what that asks a person: it stays in sight, also where the calls are folded. */
function Within(props: { context: Parts; parts: readonly ToolPart[] }) {
  return (
    <>
      {props.context.conversation.delegated && <RunCards {...props} />}
      <Asked {...props} />
    </>
  );
}

function Asked({ context, parts }: { context: Parts; parts: readonly ToolPart[] }) {
  const open = parts.filter((part) => !isSettled(part));
  if (!open.length) return null;
  const { running } = follow(context.conversation);
  return open.map((part) =>
    askedWithin(running, part.toolCallId) && <InnerQuestions key={part.toolCallId} context={context} part={part} />
  );
}

/** A person's own words as they were typed; only fenced code stands out. */
function PlainText({ text }: { text: string }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => element.current!.replaceChildren(...renderPlain(text)), [text]);
  return <div class="plain" dir="auto" ref={element} />;
}

/** What the person said in the middle of an answer, as a message of theirs. */
function Steered({ data, base }: { data: unknown; base: string }) {
  const { parts = [] } = (data ?? {}) as { parts?: Part[] };
  const attached = parts.filter((part) => part.type === "file") as FilePart[];
  return (
    <section class="steered">
      <h3 class="visually-hidden">{t("message.you-said")}</h3>
      <div class="message-body">
        {attached.length > 0 && <Files parts={attached} base={base} />}
        {parts.map((part, index) => part.type === "text" && <PlainText key={index} text={(part as TextPart).text} />)}
      </div>
    </section>
  );
}

/** Below a text that was cut and taken up again, where in the text that was is not marked. What was taken back is struck out here. */
function Seam({ data }: { data: unknown }) {
  const { at, replaced } = (data ?? {}) as { at?: string; replaced?: string };
  return (
    <p class="seam">
      <span>
        {at ? t("message.resumed-at", { time: timeLabel(at) }) : t("message.resumed")}
        {replaced?.trim() && (
          <>
            {" · "}
            {t("message.replaced")} <del dir="auto">{replaced.slice(0, MOST_REPLACED)}</del>
          </>
        )}
      </span>
    </p>
  );
}
