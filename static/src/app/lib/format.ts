// Times, durations, sizes and counts as people read them. Words and units come from the catalogue, numbers and dates from the
// browser. Pure.

import { formatLocale, t } from "./i18n.ts";
import { browserZone, ownZone } from "./own_zone.ts";

const DAY = 86_400_000;

type Format = Intl.DateTimeFormatOptions;
const CLOCK: Format = { hour: "numeric", minute: "2-digit" };
const DAY_AND_MONTH: Format = { day: "numeric", month: "long" };
const DAY_OF_YEAR: Format = { day: "numeric", month: "long", year: "numeric" };
const FULL: Format = { dateStyle: "long", timeStyle: "short" };
const ISO_DAY: Format = { year: "numeric", month: "2-digit", day: "2-digit" };
const SHORT_DAY: Format = { day: "numeric", month: "short" };
const MONTH_AND_YEAR: Format = { month: "long", year: "numeric" };

const dates = new Map<string, Intl.DateTimeFormat>();

/** Making a format costs more than using it: a list of conversations needs one per row. */
function dateText(date: Date, format: Format): string {
  return formatOf(formatLocale(), format).format(date);
}

/** The format of a language in the person's time zone. */
function formatOf(locale: string, format: Format): Intl.DateTimeFormat {
  const timeZone = ownZone();
  const key = `${locale} ${timeZone} ${JSON.stringify(format)}`;
  let made = dates.get(key);
  if (!made) dates.set(key, made = new Intl.DateTimeFormat(locale, { ...format, timeZone }));
  return made;
}

const number = (value: number, options?: Intl.NumberFormatOptions): string =>
  new Intl.NumberFormat(formatLocale(), options).format(value);
const oneDigit = { minimumFractionDigits: 1, maximumFractionDigits: 1 };

/** The day of an instant in the person's time zone, as an instant of its own: days can be compared and counted. */
function startOfDay(date: Date): number {
  if (ownZone() === browserZone()) return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
  return Date.parse(formatOf("en-CA", ISO_DAY).format(date));
}

/** The heading under which an instant (ISO 8601) is listed: Today, Yesterday, Previous 7 days, a month. */
export function dayGroup(iso: string, now = new Date()): string {
  const date = new Date(iso);
  const days = Math.round((startOfDay(now) - startOfDay(date)) / DAY);
  if (days <= 0) return t("common.today");
  if (days === 1) return t("common.yesterday");
  if (days <= 7) return t("common.previous-7-days");
  if (days <= 30) return t("common.previous-30-days");
  return dateText(date, MONTH_AND_YEAR);
}

/** The time of an instant of today, else its day and time. */
export function timeLabel(iso: string | number, now = new Date()): string {
  const date = new Date(iso);
  const time = dateText(date, CLOCK);
  return startOfDay(date) === startOfDay(now)
    ? time
    : t("common.day-and-time", { day: dateText(date, DAY_AND_MONTH), time });
}

/** Day, month and year of an instant. */
export const dayText = (iso: string): string => dateText(new Date(iso), DAY_OF_YEAR);

/** Day, year and time of an instant. */
export const fullTime = (iso: string | number): string => dateText(new Date(iso), FULL);

/** The hour of an instant, for the axis of a plot. */
export const hourLabel = (iso: string): string => dateText(new Date(iso), { hour: "numeric" });

/** Day and month of an instant, in short. */
export const dayLabel = (iso: string): string => dateText(new Date(iso), SHORT_DAY);

/** Milliseconds as 850 ms, 3.2 s, 48 s, 2 min 5 s. */
export function duration(ms: number): string {
  if (ms < 1000) return t("common.milliseconds", { count: Math.max(1, Math.round(ms)) });
  if (ms < 10_000) return t("common.seconds", { amount: number(ms / 1000, oneDigit) });
  if (ms < 60_000) return t("common.seconds", { amount: Math.round(ms / 1000) });
  const seconds = Math.round(ms / 1000);
  return t("common.minutes-seconds", { minutes: Math.floor(seconds / 60), seconds: seconds % 60 });
}

/** What is left, as 0:42, 12:05 or 1:02:05: whole seconds, the one that has begun counted. */
export function countdown(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  const two = { minimumIntegerDigits: 2 };
  const rest = number(seconds % 60, two);
  return hours ? `${number(hours)}:${number(minutes, two)}:${rest}` : `${number(minutes)}:${rest}`;
}

const SECONDS = { second: 1, minute: 60, hour: 3_600, day: 86_400 } as const;

/** How far away an instant is, in the largest unit that fits: "in 2 days", "5 minutes ago". */
export function relativeTime(iso: string, now = Date.now()): string {
  const seconds = (Date.parse(iso) - now) / 1_000;
  const unit = (["day", "hour", "minute"] as const).find((name) => Math.abs(seconds) >= SECONDS[name]) ?? "second";
  return new Intl.RelativeTimeFormat(formatLocale()).format(Math.trunc(seconds / SECONDS[unit]), unit);
}

/** Bytes as 12 B, 340 kB, 1.2 MB, 5.4 GB. */
export function fileSize(bytes: number): string {
  if (bytes < 1000) return t("common.bytes", { count: bytes });
  if (bytes < 1_000_000) return t("common.kilobytes", { count: Math.round(bytes / 1000) });
  if (bytes < 1_000_000_000) return t("common.megabytes", { amount: number(bytes / 1_000_000, oneDigit) });
  return t("common.gigabytes", { amount: number(bytes / 1_000_000_000, oneDigit) });
}

/** A cost as people read it: cents and whole amounts with two digits, less with what it takes to see it. US dollars. */
export function money(amount: string | number): string {
  const value = Number(amount);
  return dollars(value, 2, value >= 0.1 || value === 0 ? 2 : value >= 0.001 ? 4 : 6);
}

/** A cost that is an estimate: no more than two digits of it mean anything. */
export const roughMoney = (amount: string | number): string =>
  number(Number(amount), {
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    maximumSignificantDigits: 2,
  });

/** The same with as many digits for each small cost, for costs that stand below each other. */
export function evenMoney(amount: string | number): string {
  const value = Number(amount);
  if (value < LEAST) return t("common.less-than", { amount: dollars(LEAST, 4, 4) });
  return value >= 0.1 ? dollars(value, 2, 2) : dollars(value, 4, 4);
}

const LEAST = 0.0001;

const dollars = (value: number, fewest: number, most: number): string =>
  number(value, {
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    minimumFractionDigits: fewest,
    maximumFractionDigits: most,
  });

/** What a conversation took so far. */
export function usageFacts(
  { total }: { total: { input_tokens: number; output_tokens: number; cost?: string | null } },
): string {
  const read = t("message.tokens-read", { count: total.input_tokens });
  const usage = t("message.usage", { read, written: t("message.tokens-written", { count: total.output_tokens }) });
  return Number(total.cost) > 0 ? t("message.usage-cost", { usage, cost: money(total.cost!) }) : usage;
}
