// Which tool calls of a message stand in a row, and what one line says of them. Pure.

import { t } from "../lib/i18n.ts";
import { isSettled, isTool } from "./fold.ts";
import { titleOfTool } from "./tool_words.ts";
import type { Message, Part, ToolPart, Wait } from "./types.ts";

const FEWEST = 5; // fewer stand by themselves

/** Whether a part is a call that waits for this person's decision. */
export const asksApproval = (part: Part): part is ToolPart => isTool(part) && part.state === "approval-requested";

/** What a turn waits for if that is a decision about a call which the code of this call makes. */
export const askedWithin = (running: { readonly waits: readonly Wait[] } | null, callId: string): Wait | undefined =>
  running?.waits.find((wait) => wait.kind === "approval" && wait.callId === callId);

/** Calls of the last message that wait for this person's decision. */
export function openQuestions({ messages }: { readonly messages: readonly Message[] }): ToolPart[] {
  const last = messages.at(-1);
  return last?.role === "assistant" ? last.parts.filter(asksApproval) : [];
}

/** Those of them that an allowance answers; a question with choices wants a choice. */
export const allowable = (parts: readonly ToolPart[]): ToolPart[] =>
  parts.filter((part) => !part.approval?.descriptor?.choices?.length);

/** Calls with nothing said between them. `first`: index of the first one among the parts of the message. */
export interface Run {
  first: number;
  parts: ToolPart[];
}

/** Runs of tool calls, long ones only. */
export function longRuns(parts: readonly Part[]): Run[] {
  const runs: Run[] = [];
  let run: Run | null = null;
  parts.forEach((part, index) => {
    if (asksApproval(part)) run = null; // what asks stays in sight
    else if (isTool(part)) {
      if (!run) runs.push(run = { first: index, parts: [] });
      run.parts.push(part);
    } else if (part.type !== "step-start") run = null;
  });
  return runs.filter((item) => item.parts.length >= FEWEST);
}

/** What one line says of a run: "12 tool calls", and what became of them. */
export interface RunSummary {
  label: string;
  note: string;
  hasFailed: boolean;
}

export function runSummary(parts: readonly ToolPart[], isLive: boolean): RunSummary {
  const failed = parts.filter((part) => part.state === "output-error").length;
  const open = parts.filter((part) => !isSettled(part));
  const facts: string[] = [];
  if (failed) facts.push(t("tools.failed", { count: failed }));
  if (open.length) {
    if (!isLive) facts.push(t("tools.without-result", { count: open.length }));
    else {facts.push(
        open.length === 1
          ? t("tools.runs", { name: titleOfTool(open[0]) })
          : t("tools.running", { count: open.length }),
      );}
  }
  return {
    label: t("tools.calls", { count: parts.length }),
    note: facts.join(", ") || t("tools.done"),
    hasFailed: failed > 0,
  };
}
