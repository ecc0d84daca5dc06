// Which tool calls of a message stand in a row, and what one line says of them. Pure.

import { isSettled, isTool, toolName } from "./fold.js";

const FEWEST = 5; // fewer stand by themselves

export const asksApproval = (part) => isTool(part) && part.state === "approval-requested";

/** Calls of the last message that wait for this person's decision. */
export function openQuestions(conversation) {
  const last = conversation.messages.at(-1);
  return last?.role === "assistant" ? last.parts.filter(asksApproval) : [];
}

/** Runs of tool calls with nothing said between them: [{first, parts}], long ones only. `first`: index of its first part. */
export function longRuns(parts) {
  const runs = [];
  let run = null;
  parts.forEach((part, index) => {
    if (asksApproval(part)) run = null; // what asks stays in sight
    else if (isTool(part)) {
      if (!run) runs.push(run = { first: index, parts: [] });
      run.parts.push(part);
    } else if (part.type !== "step-start") run = null;
  });
  return runs.filter((item) => item.parts.length >= FEWEST);
}

/** "12 calls", and what became of them. */
export function runSummary(parts, isLive) {
  const failed = parts.filter((part) => part.state === "output-error").length;
  const open = parts.filter((part) => !isSettled(part));
  const facts = [];
  if (failed) facts.push(`${failed} failed`);
  if (isLive && open.length) facts.push(open.length === 1 ? `${toolName(open[0])} runs` : `${open.length} run`);
  else if (open.length) facts.push(`${open.length} without a result`);
  return { label: `${parts.length} tool calls`, note: facts.join(", ") || "Done", hasFailed: failed > 0 };
}
