// Times, durations, sizes and counts as people read them.

const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const dayAndMonth = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "long", timeStyle: "short" });
const monthAndYear = new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric" });

const startOfDay = (date) => new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();

/** The heading under which an instant is listed: Today, Yesterday, Previous 7 days, a month. */
export function dayGroup(iso, now = new Date()) {
  const date = new Date(iso);
  const days = Math.round((startOfDay(now) - startOfDay(date)) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days <= 7) return "Previous 7 days";
  if (days <= 30) return "Previous 30 days";
  return monthAndYear.format(date);
}

export function timeLabel(iso, now = new Date()) {
  const date = new Date(iso);
  return startOfDay(date) === startOfDay(now)
    ? clock.format(date)
    : `${dayAndMonth.format(date)}, ${clock.format(date)}`;
}

export const fullTime = (iso) => full.format(new Date(iso));

/** 850 ms, 3.2 s, 48 s, 2 min 5 s. */
export function duration(ms) {
  if (ms < 1000) return `${Math.max(1, Math.round(ms))} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 60_000) return `${Math.round(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function fileSize(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 1000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

const count = (number) => new Intl.NumberFormat().format(number);

/** A cost as people read it: cents and whole amounts with two digits, less with what it takes to see it. US dollars. */
export function money(amount) {
  const value = Number(amount);
  const digits = value >= 0.1 || value === 0 ? 2 : value >= 0.001 ? 4 : 6;
  return `$${
    new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: digits }).format(value)
  }`;
}

/** What a conversation took so far. */
export function usageFacts({ total }) {
  const cost = Number(total.cost) > 0 ? `, ${money(total.cost)}` : "";
  return `The conversation so far: ${count(total.input_tokens)} tokens read, ${
    count(total.output_tokens)
  } written${cost}`;
}

/** What a turn took: `short` for the line under an answer, `long` for its details. */
export function turnFacts(turn) {
  const read = turn.input_tokens ?? 0;
  const written = turn.output_tokens ?? 0;
  const short = [
    ["cancelled", "aborted"].includes(turn.status) && "stopped",
    turn.model,
    read + written > 0 && `${count(read + written)} tokens`,
    turn.duration_ms > 0 && duration(turn.duration_ms),
    Number(turn.cost) > 0 && money(turn.cost),
  ];
  const long = [
    `${count(read)} tokens read${turn.cached_tokens ? `, ${count(turn.cached_tokens)} of them from the cache` : ""}`,
    `${count(written)} written${turn.reasoning_tokens ? `, ${count(turn.reasoning_tokens)} of them thought` : ""}`,
    turn.step_count > 1 && `${turn.step_count} steps`,
    turn.finished_at && full.format(new Date(turn.finished_at)),
  ];
  return { short: short.filter(Boolean).join(" · "), long: long.filter(Boolean).join("; ") };
}
