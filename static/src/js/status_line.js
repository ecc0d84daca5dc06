// What goes on, in one line under the conversation. Pure: state in, words out.

import { timeLabel } from "../app/lib/format.ts";
import { openQuestions } from "./runs.js";

// By the error codes of docs/reference/errors.md: what a person can do about it.
const HINTS = {
  rate_limited: "The model's service asks for a pause. Wait a little, then try again.",
  context_overflow:
    "The conversation has become longer than this model can read. Start a new one, or edit an earlier message.",
  model_auth: "The key for the model's service was refused. The administrator of this server has to set it.",
  model_not_configured:
    "Set OPENAI_API_KEY, or OPENAI_BASE_URL for any compatible server, and THINK_MODEL=provider/model, then start again. Your message is kept.",
  model_rejected: "The model's service did not take this request. Editing the message, or another model, may help.",
  overloaded: "The model's service is busy or failing. Try again in a moment.",
  network_lost: "The model's service could not be reached. Try again in a moment.",
  turn_timeout: "The agent gives an answer only so much time. What it had said is kept.",
  output_invalid: "The model's answer did not have the form that was asked for. Trying again may help; it is kept.",
  stream_stalled: "The model stopped sending. What it had said is kept.",
};
const RETRY_REASONS = {
  rate_limited: "Rate limited",
  overloaded: "The model is overloaded",
  network_lost: "The connection to the model was lost",
  stream_stalled: "The model fell silent",
};
const QUIET_AFTER = 6_000;

/** {kind, text, detail?, actions?} or null when there is nothing to say. */
export function statusOf(conversation, outbox) {
  const { running, failed } = conversation;
  if (conversation.place) return null; // that line belongs to the end of the conversation
  if (conversation.isRecovering) return { kind: "wait", text: "Picking up after an interruption. Nothing is lost." };
  if (conversation.loadError && !conversation.isLoaded) {
    return {
      kind: "error",
      text: "This conversation could not be loaded.",
      detail: conversation.loadError.message,
      actions: [{ name: "reload", label: "Try again" }],
    };
  }
  if (!conversation.isLoaded && conversation.instance.id) return { kind: "wait", text: "Loading" };
  if (conversation.compacting === "running") return { kind: "wait", text: "Summarising older messages" };
  if (running) return runningStatus(conversation, running);
  if (conversation.compacting) return { kind: "wait", text: "Waiting to summarise older messages" };
  if (outbox.entries.some((entry) => entry.state === "accepted")) {
    return { kind: "wait", text: "Waiting for the model" };
  }
  if (failed) return failedStatus(failed, conversation.instance.isReadOnly);
  if (conversation.compactionError) return compactionStatus(conversation);
  return questionStatus(openQuestions(conversation).length, conversation.instance.isReadOnly);
}

function runningStatus(conversation, running) {
  if (conversation.isStopping) return { kind: "wait", text: "Stopping" };
  if (running.waits?.length) return { kind: "wait", text: parkedText(running.waits) };
  const again = running.retry && retryText(running.retry);
  if (again) return { kind: "wait", text: again };
  if (running.phase === "waiting") return { kind: "wait", text: "Waiting for the model" };
  const part = running.message?.parts.at(-1);
  const isOpen = part && part.type !== "step-start" && part.state !== "done" && !part.state?.startsWith("output-");
  if (!isOpen) return { kind: "wait", text: "Waiting for the model" };
  // An open part shows by itself that it goes on, as long as it does.
  const isText = part.type === "text" || part.type === "reasoning";
  return isText && Date.now() - running.heardAt > QUIET_AFTER
    ? { kind: "wait", text: "Nothing new for a while. Still waiting." }
    : null;
}

/** "Rate limited, retrying in 18 s, attempt 2 of 3", or "" once its time has come. */
function retryText({ code, attempt, attempts, retryAt }) {
  const seconds = Math.ceil((retryAt - Date.now()) / 1000);
  if (!(seconds > 0)) return "";
  return `${
    RETRY_REASONS[code] ?? "The model did not answer"
  }, retrying in ${seconds} s, attempt ${attempt} of ${attempts}`;
}

/** "Waiting for the deployment window, since 14:02", of several the one that began first and how many more. */
function parkedText(waits) {
  const [first, ...more] = [...waits].sort((one, other) => (one.since ?? "").localeCompare(other.since ?? ""));
  const what = first.label || first.kind || "an answer";
  const since = first.since ? `, since ${timeLabel(first.since)}` : "";
  return `Waiting for ${what}${more.length ? ` and ${more.length} more` : ""}${since}`;
}

function compactionStatus({ compactionError, instance }) {
  const actions = instance.isReadOnly
    ? []
    : [{ name: "compactAgain", label: "Try again" }, { name: "dismissCompaction", label: "Dismiss" }];
  return {
    kind: "error",
    text: `Older messages could not be summarised: ${compactionError}`,
    detail: "Nothing was changed. The conversation goes on as it is.",
    actions,
  };
}

function questionStatus(count, isReadOnly) {
  if (!count || isReadOnly) return null;
  const text = count === 1 ? "Waiting for your decision." : `${count} calls wait for your decision.`;
  const all = [{ name: "approveAll", label: `Allow all ${count}` }, { name: "denyAll", label: "Decline all" }];
  return { kind: "ask", text, detail: "A new message goes on without it.", actions: count > 1 ? all : [] };
}

function failedStatus(failed, isReadOnly) {
  const text = failed.error ? `The answer failed: ${failed.error}` : "The answer failed.";
  const detail = HINTS[failed.code] ?? "Your message, and what was said up to then, are kept.";
  return { kind: "error", text, detail, actions: isReadOnly ? [] : [{ name: "retryFailed", label: "Try again" }] };
}
