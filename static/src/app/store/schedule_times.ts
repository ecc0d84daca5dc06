// The times of a schedule as a form has them, and as they are sent. Pure.

import { ownZone } from "../lib/own_zone.ts";
import type { Schedule, Times } from "../net/schedules_api.ts";

export type Way = "clock" | "interval" | "once" | "cron";
export type Unit = "minutes" | "hours" | "days";

/** What is in the fields; those of the other ways keep what was there. */
export interface TimesDraft {
  way: Way;
  clock: string; // HH:mm
  days: string; // the last field of cron
  every: string;
  unit: Unit;
  instant: string; // YYYY-MM-DDTHH:mm
  cron: string;
  zone: string;
}

const SECONDS: Record<Unit, number> = { minutes: 60, hours: 3_600, days: 86_400 };
const CLOCK = /^(\d{1,2}) (\d{1,2}) \* \* (\*|1-5|[0-6])$/;

export const newTimes = (): TimesDraft => ({
  way: "clock",
  clock: "09:00",
  days: "*",
  every: "1",
  unit: "hours",
  instant: "",
  cron: "0 9 * * *",
  zone: ownZone(),
});

/** The fields that say what a schedule has. */
export function timesOf({ kind, spec, zone, next }: Schedule): TimesDraft {
  const times = newTimes();
  if (kind === "interval") return { ...times, way: "interval", ...splitSeconds(Number(spec)) };
  if (kind === "cron") {
    const [, minute, hour, days] = CLOCK.exec(spec) ?? [];
    if (minute === undefined) return { ...times, way: "cron", cron: spec, zone };
    return { ...times, clock: `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`, days, cron: spec, zone };
  }
  const instant = kind === "instant" ? spec : next[0];
  return { ...times, way: "once", instant: instant ? localInstant(new Date(instant)) : "" };
}

/** What is sent; nothing while a field is empty. */
export function timesFrom(draft: TimesDraft): Times | null {
  const { way, clock, days, every, unit, instant, cron, zone } = draft;
  if (way === "interval") {
    const seconds = Number(every) * SECONDS[unit];
    return seconds > 0 ? { kind: "interval", spec: String(seconds), zone: "UTC" } : null;
  }
  if (!zone.trim()) return null;
  if (way === "once") return instant ? { kind: "instant", spec: instant, zone: zone.trim() } : null;
  if (way === "cron") return cron.trim() ? { kind: "cron", spec: cron.trim(), zone: zone.trim() } : null;
  const [hour, minute] = clock.split(":").map(Number);
  if (!clock || Number.isNaN(hour) || Number.isNaN(minute)) return null;
  return { kind: "cron", spec: `${minute} ${hour} * * ${days}`, zone: zone.trim() };
}

function splitSeconds(seconds: number): { every: string; unit: Unit } {
  const units: Unit[] = ["days", "hours", "minutes"];
  const unit = units.find((each) => seconds % SECONDS[each] === 0) ?? "minutes";
  return { every: String(seconds / SECONDS[unit]), unit };
}

/** An instant as a field for local times has it. */
function localInstant(date: Date): string {
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}
