// What is at work, in words. Pure.

import { fullTime, relativeTime, timeLabel } from "../lib/format.ts";
import { type MessageKey, t } from "../lib/i18n.ts";
import type { WorkItem, WorkVerb } from "../net/work_api.ts";
import type { Standing } from "./schedule_facts.ts";

const STANDING: Record<string, [MessageKey, string]> = {
  "turn pending": ["work.turn-waits", "is-busy"],
  "turn running": ["work.turn-runs", "is-busy"],
  "background pending": ["background.pending", "is-busy"],
  "background running": ["background.running", "is-busy"],
  "background parked": ["background.parked", "is-asking"],
  "background completed": ["background.completed", "is-good"],
  "background failed": ["background.failed", "is-bad"],
  "background cancelled": ["background.cancelled", "is-off"],
  "background interrupted": ["background.interrupted", "is-asking"],
  "schedule active": ["schedules.active", "is-good"],
  "schedule paused": ["schedules.paused", "is-off"],
  "schedule broken": ["schedules.broken", "is-bad"],
};

const RUN: Record<string, MessageKey> = {
  waiting: "work.last-waits",
  running: "work.last-runs",
  completed: "work.last-completed",
  failed: "work.last-failed",
  stopped: "work.last-stopped",
  left_out: "work.last-left-out",
};

const VERBS: Record<WorkVerb, MessageKey> = {
  cancel: "work.stop",
  pause: "schedules.pause",
  resume: "schedules.resume",
  run: "schedules.run-now",
  retry: "background.restart",
};

export function standingOf({ kind, status, verbs, ended_at }: WorkItem): Standing {
  const isStopping = kind !== "schedule" && !ended_at && !verbs.includes("cancel");
  if (isStopping) return { text: t("background.stopping"), mood: "is-busy" };
  const [key, mood] = STANDING[`${kind} ${status}`] ?? ["background.pending", "is-off"];
  return { text: t(key), mood };
}

export const verbText = (verb: WorkVerb): string => t(VERBS[verb]);

/** What it is called beside its conversation. */
export const nameOf = ({ kind, name }: WorkItem): string =>
  kind === "turn" ? t("work.answer") : name === "keep_alive" ? t("background.keep-alive") : name;

/** When it runs next, and how the last run went; of what ended, when. */
export function timesText(item: WorkItem, now = Date.now()): string {
  const texts = [
    item.next_at ? t("work.next", { when: relativeTime(item.next_at, now), at: fullTime(item.next_at) }) : "",
    item.last_run ? t(RUN[item.last_run.status], { when: timeLabel(item.last_run.started_at) }) : "",
    item.ended_at ? timeLabel(item.ended_at) : "",
  ].filter(Boolean);
  return texts.join(" · ");
}

/** Why the last run or the item itself failed. */
export const problemOf = ({ error, last_run }: WorkItem): string =>
  error || (last_run?.status === "failed" ? last_run.error : "");
