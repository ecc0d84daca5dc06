// What goes on, in one line under the conversation. Pure: state in, words out.

import { timeLabel } from "../lib/format.ts";
import { type MessageKey, t } from "../lib/i18n.ts";
import { isSettled, isTool } from "./fold.ts";
import { isOwn, mayDecide } from "./instances.ts";
import { allowable, openQuestions } from "./runs.ts";
import type { ConversationFields } from "./state.ts";
import type { Activity, TurnStream } from "./stream.ts";
import type { Summaries, SummaryOutcome } from "./summaries.ts";
import type { Failure, Message, OutboxEntry, Part, Retry, ToolPart, Wait } from "./types.ts";

/** What a person can do about it; the names are those of the page's actions. */
export interface StatusAction {
  name:
    | "reload"
    | "retryFailed"
    | "otherModel"
    | "compactAgain"
    | "dismissCompaction"
    | "showSummary"
    | "approveAll"
    | "denyAll"
    | "openApprovals";
  label: string;
}

/** `kind`: something goes on, something failed, the person is asked, or a command reports its result. */
export interface Status {
  kind: "wait" | "error" | "ask" | "note";
  text: string;
  detail?: string;
  /** What those who run the server read of it. */
  reason?: string;
  actions?: StatusAction[];
}

/** What of a conversation the line is about. */
export type StatusFields = Pick<
  ConversationFields,
  | "compacting"
  | "failed"
  | "instance"
  | "isLoaded"
  | "isRecovering"
  | "isStopping"
  | "loadError"
  | "messages"
  | "place"
  | "running"
>;

// By the error codes of docs/reference/errors.md: what a person can do about it.
const HINTS: { readonly [code: string]: MessageKey } = {
  rate_limited: "status.hint-rate-limited",
  context_overflow: "status.hint-context-overflow",
  model_auth: "status.hint-model-auth",
  model_not_configured: "status.hint-model-not-configured",
  model_rejected: "status.hint-model-rejected",
  overloaded: "status.hint-overloaded",
  network_lost: "status.hint-network-lost",
  turn_timeout: "status.hint-turn-timeout",
  output_invalid: "status.hint-output-invalid",
  stream_stalled: "status.hint-stream-stalled",
};
/** Another model may do what this one did not. */
const OF_MODEL: ReadonlySet<string> = new Set([
  "context_overflow",
  "model_auth",
  "model_rejected",
  "network_lost",
  "output_invalid",
  "overloaded",
  "rate_limited",
  "stream_stalled",
]);
const RETRY_REASONS: { readonly [code: string]: MessageKey } = {
  rate_limited: "status.retry-rate-limited",
  overloaded: "status.retry-overloaded",
  network_lost: "status.retry-network-lost",
  stream_stalled: "status.retry-stream-stalled",
};
/** The error code of a turn that was interrupted and goes on when a person asks for it. */
export const PAUSED = "paused";
/** That of a turn which ended as its conversation was deleted; that is back since. */
const DELETED = "conversation_deleted";
const QUIET_AFTER = 6_000;
const TIMED_AFTER = 3_000; // what takes less needs no clock

/**
 * What to say now, or null when there is nothing to say. While a turn runs it changes by itself, with the clock: ask again
 * each second. `summaries`: why the last one failed; `now` in milliseconds since the epoch.
 */
export function statusOf(
  conversation: StatusFields,
  outbox: { readonly entries: readonly Pick<OutboxEntry, "state">[] },
  summaries: Pick<Summaries, "error" | "outcome"> | null = null,
  now = Date.now(),
): Status | null {
  const { running, failed, instance } = conversation;
  const { id, isReadOnly, waitingCount } = instance;
  if (conversation.place) return null; // that line belongs to the end of the conversation
  if (conversation.isRecovering) return wait(t("status.recovering"));
  if (conversation.loadError && !conversation.isLoaded) return loadStatus(conversation.loadError);
  if (!conversation.isLoaded && id) return wait(t("status.loading"));
  if (conversation.compacting === "running") return wait(t("status.summarising"));
  if (running) return runningStatus(running, conversation, waitingCount > 0, now);
  if (conversation.compacting) return wait(t("status.waiting-to-summarise"));
  if (outbox.entries.some((entry) => entry.state === "accepted")) return wait(t("status.waiting-for-model"));
  if (summaries?.outcome) return outcomeStatus(summaries.outcome);
  if (summaries?.error) return compactionStatus(summaries.error, isReadOnly || !isOwn(instance));
  if (failed) return failedStatus(failed, isReadOnly);
  return questionStatus(openQuestions(conversation), !mayDecide(instance));
}

const wait = (text: string): Status => ({ kind: "wait", text });

// --- a turn that runs -----------------------------------------------------------------------------------------------

function runningStatus(
  running: TurnStream,
  { isStopping, messages }: StatusFields,
  asks: boolean,
  now: number,
): Status | null {
  if (isStopping) return wait(t("status.stopping"));
  // About a call that code makes. Other waits may be called so, and ask no person.
  const question = asks && running.waits.find(({ kind }) => kind === "approval");
  if (question) return approvalStatus(question, isShown(messages, question));
  if (running.waits.length) return wait(parkedText(running.waits, now));
  const again = running.retry && retryText(running.retry, now);
  if (again) return wait(again);
  const { activity, message } = running;
  const silence = now - running.lastSignAt;
  const last = message?.parts.at(-1);
  if (activity?.insteadOf && !running.hasSpoken) return wait(activityText(activity, now)); // in mid-text as well
  if (last && isOpen(last)) {
    if (isTool(last)) return null; // its own line says that it runs, and since when
    // An open text shows by itself that it goes on, as long as it does.
    return silence > QUIET_AFTER ? wait(t("status.quiet", { time: elapsed(silence) })) : null;
  }
  if (message?.parts.some((part) => isTool(part) && !isSettled(part))) return null;
  if (activity?.kind === "model") return wait(activityText(activity, now));
  return wait(
    silence > QUIET_AFTER
      ? t("status.waiting-for-model-long", { time: elapsed(silence) })
      : t("status.waiting-for-model"),
  );
}

/** Whether the call that it is about stands in the answer, or in the one that this goes on from: its card is there. */
const isShown = (messages: readonly Message[], { callId }: Wait): boolean =>
  messages.slice(-2).some(({ parts }) => parts.some((part) => isTool(part) && part.toolCallId === callId));

function approvalStatus({ label }: Wait, isHere: boolean): Status | null {
  if (isHere) return null; // its card says it
  return {
    kind: "ask",
    text: label ? t("status.decide-about", { what: label }) : t("status.decide", { count: 1 }),
    actions: [{ name: "openApprovals", label: t("status.open-approvals") }],
  };
}

function isOpen(part: Part): boolean {
  if (part.type === "step-start") return false;
  const state = "state" in part ? part.state : undefined;
  return state !== "done" && !state?.startsWith("output-");
}

/** "gpt-5 is thinking, 12 s". */
function activityText({ name, since, insteadOf }: Activity, now: number): string {
  if (!name) return t("status.waiting-for-model");
  if (insteadOf) name = t("status.in-place-of", { name, other: insteadOf });
  const duration = now - since;
  return duration < TIMED_AFTER
    ? t("status.thinking-now", { name })
    : t("status.thinking", { name, time: elapsed(duration) });
}

/** "The model is overloaded. Trying again in 18 s (attempt 2 of 3).", or "" once its time has come. */
function retryText({ code, attempt, attempts, retryAt }: Retry, now: number): string {
  const left = retryAt - now;
  if (!(left > 0)) return "";
  const reason = t(RETRY_REASONS[code] ?? "status.retry-no-answer");
  return t("status.attempt", { reason, time: elapsed(Math.ceil(left / 1000) * 1000), attempt, attempts });
}

/** "Waiting for the deployment window, since 14:02", of several the one that began first and how many more. */
function parkedText(waits: readonly Wait[], now: number): string {
  const [first, ...more] = [...waits].sort((one, other) => (one.since ?? "").localeCompare(other.since ?? ""));
  const what = first.label || first.kind || t("status.waiting-for-something");
  const count = more.length;
  if (!first.since) return count ? t("status.waiting-for-more", { what, count }) : t("status.waiting-for", { what });
  const time = timeLabel(first.since, new Date(now));
  return count
    ? t("status.waiting-for-more-since", { what, count, time })
    : t("status.waiting-for-since", { what, time });
}

/** Whole seconds and minutes, as a line that counts shows them: "48 s", "2 min 5 s". */
function elapsed(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return seconds < 60
    ? t("status.seconds", { seconds })
    : t("status.minutes", { minutes: Math.floor(seconds / 60), seconds: seconds % 60 });
}

// --- what failed, what is asked -------------------------------------------------------------------------------------

const tryAgain = (name: StatusAction["name"]): StatusAction => ({ name, label: t("status.try-again") });

function loadStatus(error: Error): Status {
  return { kind: "error", text: t("status.load-failed"), detail: error.message, actions: [tryAgain("reload")] };
}

function failedStatus({ error, code = "" }: Failure, isReadOnly: boolean): Status {
  const hint = HINTS[code];
  const again = tryAgain("retryFailed");
  if (code === PAUSED) again.label = t("status.resume");
  if (code === DELETED) again.label = t("status.answer-now");
  const other: StatusAction[] = OF_MODEL.has(code) ? [{ name: "otherModel", label: t("status.other-model") }] : [];
  const actions = isReadOnly ? [] : [again, ...other];
  if (code === DELETED) return { kind: "ask", text: t("status.hint-conversation-deleted"), actions };
  if (hint) return { kind: "error", text: t(hint), reason: error, actions };
  const text = error ? t("status.failed-because", { reason: error }) : t("status.failed");
  return { kind: "error", text, detail: t("status.failed-hint"), actions };
}

const dismiss = (): StatusAction => ({ name: "dismissCompaction", label: t("status.dismiss") });

function outcomeStatus({ kind, compactionId }: SummaryOutcome): Status {
  if (kind === "nothing") return { kind: "note", text: t("status.nothing-to-summarise"), actions: [dismiss()] };
  const show: StatusAction = { name: "showSummary", label: t("status.show-summary") };
  return { kind: "note", text: t("status.summarised"), actions: compactionId ? [show, dismiss()] : [dismiss()] };
}

function compactionStatus(reason: string, isReadOnly: boolean): Status {
  return {
    kind: "error",
    text: t("status.compaction-failed", { reason }),
    detail: t("status.compaction-failed-hint"),
    actions: isReadOnly ? [] : [tryAgain("compactAgain"), dismiss()],
  };
}

function questionStatus(open: readonly ToolPart[], isReadOnly: boolean): Status | null {
  const count = open.length;
  if (count < 2 || isReadOnly) return null; // the card of a single one says it all
  const allowed = allowable(open).length;
  const all: StatusAction[] = [{ name: "denyAll", label: t("status.decline-all") }];
  if (allowed > 1) all.unshift({ name: "approveAll", label: t("status.allow-all", { count: allowed }) });
  return {
    kind: "ask",
    text: t("status.decide", { count }),
    detail: t("status.decide-hint"),
    actions: all,
  };
}
