// Schedules and their runs in words. Pure.

import { duration, fullTime, relativeTime } from "../lib/format.ts";
import { formatLocale, type MessageKey, t } from "../lib/i18n.ts";
import type { Schedule, ScheduleRun } from "../net/schedules_api.ts";
import { timesOf } from "./schedule_times.ts";

/** How something stands, as its mark shows it. */
export interface Standing {
  text: string;
  mood: string;
}

const STATUS: Record<Schedule["status"], [MessageKey, string]> = {
  active: ["schedules.active", "is-good"],
  paused: ["schedules.paused", "is-off"],
  ended: ["schedules.ended", "is-off"],
  broken: ["schedules.broken", "is-bad"],
};

const RUN: Record<ScheduleRun["status"], [MessageKey, string]> = {
  waiting: ["schedules.run-waiting", "is-busy"],
  running: ["schedules.run-running", "is-busy"],
  completed: ["schedules.run-completed", "is-good"],
  failed: ["schedules.run-failed", "is-bad"],
  stopped: ["schedules.run-stopped", "is-off"],
  left_out: ["schedules.run-left-out", "is-off"],
};

const MADE_BY: Record<string, MessageKey> = {
  person: "schedules.by-person",
  model: "schedules.by-model",
  code: "schedules.by-code",
  declaration: "schedules.by-declaration",
};

export function standingOf(schedule: Schedule): Standing {
  const [key, mood] = STATUS[schedule.status];
  return { text: t(key), mood };
}

export function runStanding(run: ScheduleRun): Standing {
  const [key, mood] = RUN[run.status];
  return { text: t(key), mood };
}

export const isOnItsWay = (run: ScheduleRun | null | undefined): boolean =>
  run?.status === "waiting" || run?.status === "running";

/** Its title, or the beginning of what it asks, or the method that it runs. */
export const nameOf = ({ title, prompt, method }: Schedule): string =>
  title || prompt || method || t("schedules.title");

export const madeBy = ({ created_by }: Schedule): string => t(MADE_BY[created_by] ?? "schedules.by-code");

/** "Every day at 09:00 (Europe/Berlin)", "Every 2 hours", "Once". */
export function timesText(schedule: Schedule): string {
  const { way, clock, days, cron, zone } = timesOf(schedule);
  if (way === "interval") return t("schedules.every", { time: duration(Number(schedule.spec) * 1_000) });
  if (way === "once") return t("schedules.once");
  if (way === "cron") return t("schedules.cron-in", { cron, zone });
  return t("schedules.day-at", { days: daysText(days), time: clock, zone });
}

export function daysText(days: string): string {
  if (days === "*") return t("schedules.every-day");
  return days === "1-5" ? t("schedules.weekdays") : weekday(Number(days));
}

/** The name of a day of the week; 0 is Sunday. */
export function weekday(day: number): string {
  const date = new Date(Date.UTC(2023, 0, 1 + day)); // the first of January 2023 was a Sunday
  return new Intl.DateTimeFormat(formatLocale(), { weekday: "long", timeZone: "UTC" }).format(date);
}

/** "Next in 2 hours", or that nothing comes. */
export function nextText({ next }: Schedule): string {
  return next.length ? t("schedules.next-in", { when: relativeTime(next[0]) }) : t("schedules.no-next");
}

/** When a run began, and how long it took. */
export function runTimes(run: ScheduleRun): string {
  const began = fullTime(run.started_at);
  if (!run.finished_at) return began;
  const took = duration(Math.max(0, Date.parse(run.finished_at) - Date.parse(run.started_at)));
  return t("schedules.run-took", { began, took });
}
