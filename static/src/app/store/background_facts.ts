// Background work in words: fibers, and agents that work for a conversation. Pure.

import { duration, fullTime, money, relativeTime } from "../lib/format.ts";
import { type MessageKey, t } from "../lib/i18n.ts";
import type { Fiber, FiberEntry, TreeRun } from "../net/background_api.ts";
import type { Standing } from "./schedule_facts.ts";

const KEEP_ALIVE = "keep_alive";

const STATUS: Record<Fiber["status"], [MessageKey, string]> = {
  pending: ["background.pending", "is-busy"],
  running: ["background.running", "is-busy"],
  parked: ["background.parked", "is-asking"],
  completed: ["background.completed", "is-good"],
  failed: ["background.failed", "is-bad"],
  cancelled: ["background.cancelled", "is-off"],
  interrupted: ["background.interrupted", "is-asking"],
};

const REASONS: Record<string, MessageKey> = {
  cancelled: "background.reason-by-code",
  cancelled_by_staff: "background.reason-by-staff",
  deleted: "background.reason-deleted",
  halted: "background.reason-halted",
  method_missing: "background.reason-missing",
  no_progress_timeout: "background.reason-no-progress",
  not_restarted: "background.reason-not-again",
  not_resumed_in_time: "background.reason-lapsed",
  out_of_memory: "background.reason-memory",
  recovered: "background.reason-recovered",
  recovery_attempts_exhausted: "background.reason-crashed",
  requeued: "background.reason-requeued",
  resolved: "background.reason-by-hand",
  resumed: "background.reason-answered",
  retries_exhausted: "background.reason-retries",
  retry: "background.reason-retry",
  shutdown: "background.reason-shutdown",
  stopped: "background.reason-by-you",
  timed_out: "background.reason-timed-out",
  unknown_durable: "background.reason-missing",
  worker_lost: "background.reason-worker-lost",
};

const RUN: Record<TreeRun["status"], [MessageKey, string]> = {
  starting: ["background.run-starting", "is-busy"],
  running: ["runs.running", "is-busy"],
  waiting: ["background.run-waiting", "is-asking"],
  completed: ["runs.completed", "is-good"],
  error: ["runs.error", "is-bad"],
  aborted: ["runs.aborted", "is-off"],
  skipped: ["background.run-skipped", "is-off"],
  interrupted: ["runs.interrupted", "is-asking"],
};

const ENTRIES: Record<Exclude<FiberEntry["kind"], "step">, MessageKey> = {
  created: "background.entry-created",
  started: "background.entry-started",
  lost: "background.entry-lost",
  stop_requested: "background.entry-stop",
  ended: "background.entry-ended",
};

export const nameOfFiber = ({ method }: Fiber): string => (method === KEEP_ALIVE ? t("background.keep-alive") : method);

export function fiberStanding({ status, reason, is_stopping }: Fiber): Standing {
  if (is_stopping) return { text: t("background.stopping"), mood: "is-busy" };
  const isMissing = status === "pending" && REASONS[reason] === "background.reason-missing";
  if (isMissing) return { text: t("background.missing"), mood: "is-asking" };
  const [key, mood] = STATUS[status];
  return { text: t(key), mood };
}

/** Why it stands where it does; "" where nothing is to be said. The code of an error is no reason: the error says more. */
export function reasonText({ reason, status, error }: Fiber): string {
  const known = REASONS[reason];
  if (known) return t(known);
  if (!reason || (status === "failed" && error)) return "";
  return t("background.reason-other", { reason: reason.replaceAll("_", " ") });
}

export const isUnderWay = ({ status }: Pick<Fiber, "status">): boolean =>
  status === "pending" || status === "running" || status === "parked";

/** Instant since which it counts, in milliseconds since the epoch. */
export const sinceOf = ({ started_at, created_at }: Fiber): number => Date.parse(started_at ?? created_at);

/** How long it took; "" while it is under way. */
export function tookText(fiber: Fiber): string {
  if (!fiber.finished_at || isUnderWay(fiber)) return "";
  return duration(Math.max(0, Date.parse(fiber.finished_at) - sinceOf(fiber)));
}

/** "2 attempts, 1 of 3 retries used". */
export function attemptsText({ attempts, retry_count, max_retries }: Fiber): string {
  const texts = [t("background.attempts", { count: attempts })];
  if (max_retries) texts.push(t("background.retries", { count: retry_count, most: max_retries }));
  return joined(texts);
}

/** When the next attempt is due, where that is later than now. */
export function dueText({ not_before }: Fiber, now = Date.now()): string {
  if (!not_before || Date.parse(not_before) <= now) return "";
  return t("background.not-before", { when: relativeTime(not_before, now) });
}

export function waitText({ kind, label, since }: Fiber["waits"][number]): string {
  const what = label || kind.replaceAll("_", " ");
  return since ? t("background.waits-since", { what, since: fullTime(since) }) : what;
}

export const entryText = ({ kind, step = "", attempt, count = 1 }: FiberEntry): string =>
  kind === "step" ? t("background.entry-step", { step, attempt: attempt ?? 1 }) : t(ENTRIES[kind], { count });

/** What waits for a person first, then what is under way, then the rest: each as it came. */
export function groupsOf(fibers: readonly Fiber[]): { attention: Fiber[]; underWay: Fiber[]; ended: Fiber[] } {
  return {
    attention: fibers.filter(({ can_resolve }) => can_resolve),
    underWay: fibers.filter(isUnderWay),
    ended: fibers.filter((fiber) => !isUnderWay(fiber) && !fiber.can_resolve),
  };
}

export interface RunNode {
  run: TreeRun;
  below: RunNode[];
}

/** The runs of a conversation with those below them. Runs of a conversation that serves two runs stand below the newer one. */
export function treeOf(runs: readonly TreeRun[], instanceId: string): RunNode[] {
  const byParent = new Map<string, TreeRun[]>();
  for (const run of runs) byParent.set(run.parent_id, [...(byParent.get(run.parent_id) ?? []), run]);
  const taken = new Set<string>();
  const nodesOf = (parentId: string): RunNode[] => {
    if (taken.has(parentId)) return [];
    taken.add(parentId);
    return (byParent.get(parentId) ?? []).map((run) => ({ run, below: run.child_id ? nodesOf(run.child_id) : [] }));
  };
  return nodesOf(instanceId);
}

export const runGoesOn = ({ status }: Pick<TreeRun, "status">): boolean =>
  status === "starting" || status === "running" || status === "waiting";

export function treeStanding(run: TreeRun): Standing {
  if (runGoesOn(run) && run.question_count) return { text: t("runs.asks"), mood: "is-asking" };
  const [key, mood] = RUN[run.status];
  return { text: t(key), mood };
}

/** "3 turns · 1 question · $0.02 · 12 s". */
export function countsText(run: TreeRun): string {
  const texts = [t("background.turns", { count: run.turn_count })];
  if (run.question_count) texts.push(t("background.questions", { count: run.question_count }));
  if (Number(run.cost) > 0) texts.push(money(run.cost));
  if (run.is_detached) texts.push(t("background.run-later"));
  if (run.finished_at) texts.push(duration(Math.max(0, Date.parse(run.finished_at) - Date.parse(run.created_at))));
  return joined(texts);
}

/** Why it failed or was stopped, in the words of its outcome. */
export function whyOf({ outcome }: TreeRun): string {
  const { error, reason } = outcome ?? {};
  return [error, reason].find((text): text is string => typeof text === "string" && text !== "") ?? "";
}

export const joined = (texts: readonly string[]): string =>
  texts.filter(Boolean).reduce((text, note) => (text ? t("background.with-note", { text, note }) : note), "");
