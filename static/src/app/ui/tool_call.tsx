// A tool call: one line that opens. What it does, what it was asked, how it stands, how long it took. What is inside is loaded
// when the first one is opened (`calls/`).

import { duration } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { isSettled, toolName } from "../store/fold.ts";
import { askedWithin } from "../store/runs.ts";
import { hintOf, titleOfTool } from "../store/tool_words.ts";
import type { Message, ToolPart } from "../store/types.ts";
import { Elapsed } from "./elapsed.tsx";
import { Fold } from "./fold.tsx";
import { lazy } from "./lazy.tsx";
import type { Opened } from "./message.tsx";
import type { Parts } from "./parts_context.ts";

const ToolBody = lazy(async () => (await import("../later/calls.ts")).ToolBody);
const Question = lazy(async () => (await import("../later/calls.ts")).Question);

interface Props {
  context: Parts;
  message: Message;
  part: ToolPart;
  /** Nothing was said after this message. */
  isLast: boolean;
  opened: Opened;
}

const STATES = {
  "input-streaming": "tools.state-writing",
  "input-available": "tools.state-running",
  "approval-requested": "tools.state-waiting",
  "approval-responded": "tools.state-allowed",
  "output-available": "tools.state-done",
  "output-error": "tools.state-failed",
  "output-denied": "tools.state-declined",
} as const;

export function ToolCall({ context, message, part, isLast, opened }: Props) {
  const { isLive } = message;
  const isElsewhere = part.state === "input-available" && !isLive && isLast;
  const isOpen = isLive && !isSettled(part);
  const id = part.toolCallId;
  const isAsking = part.state === "approval-requested"; // then its card says all of it
  if (isAsking) {
    return (
      <div class="tool-call">
        <Question context={context} part={part} />
      </div>
    );
  }
  return (
    <div class="tool-call">
      <Fold
        icon="tool"
        class={isOpen ? "tool is-live" : "tool"}
        data-state={part.preliminary ? "running" : part.state}
        label={titleOfTool(part) || t("tools.tool")}
        hint={hintOf(part)}
        note={<Note part={part} message={message} isElsewhere={isElsewhere} context={context} />}
        isOpen={opened.calls.has(id)}
        onOpen={(isRead) => isRead ? opened.calls.add(id) : opened.calls.delete(id)}
      >
        {() => <ToolBody context={context} part={part} />}
      </Fold>
      {isElsewhere && <Question context={context} part={part} />}
    </div>
  );
}

interface NoteProps {
  part: ToolPart;
  message: Message;
  isElsewhere: boolean;
  context: Parts;
}

function Note({ part, message, isElsewhere, context }: NoteProps) {
  const state = stateOf(part, message.isLive, isElsewhere);
  const edited = part.approval?.edited ? `${t("tools.edited")} · ` : "";
  if (!isSettled(part) && askedWithin(follow(context.conversation).running, part.toolCallId)) {
    return <>{t("tools.state-waiting")}</>;
  }
  if (message.isLive && !isSettled(part) && part.state !== "approval-requested") {
    const since = runsSince(part, context);
    return <>{edited}{state} {since ? <Elapsed since={since} /> : null}</>;
  }
  const ms = toolTime(part, message.toolMs);
  return <>{edited}{ms ? t("tools.state-and-time", { state, time: duration(ms) }) : state}</>;
}

function stateOf(part: ToolPart, isLive: boolean, isElsewhere: boolean): string {
  if (part.preliminary) return t("tools.state-running");
  if (isElsewhere) return t("tools.waiting-elsewhere");
  if (!isLive && (part.state === "input-streaming" || part.state === "input-available")) return t("tools.no-result");
  return t(STATES[part.state]);
}

/** Milliseconds since the epoch: as the server has it, else since this tab saw it begin. */
function runsSince(part: ToolPart, { conversation }: Parts): number {
  const activity = conversation.running?.activity;
  const isIt = activity?.kind === "tool" && activity.name === toolName(part);
  return isIt ? activity.since : part.startedAt ?? 0;
}

/** Milliseconds: what the server measured; until the page was read again, what this tab saw. */
function toolTime(part: ToolPart, times: Record<string, number>): number {
  const measured = times[part.toolCallId];
  if (measured !== undefined) return measured;
  return part.startedAt && part.endedAt && isSettled(part) ? part.endedAt - part.startedAt : 0;
}
