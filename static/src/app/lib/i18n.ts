// Every text of the page comes from a message catalogue, by its key. A message holds names in braces, and a message that
// counts has one text for each plural form of the language.

import { en } from "../messages/en.ts";
import type { later } from "../messages/later.ts";

export type Catalogue = typeof en & typeof later;
export type MessageKey = keyof Catalogue;
type Plural = { readonly [form in Intl.LDMLPluralRule]?: string } & { readonly other: string };
export type Message = string | Plural;
export type Values = Readonly<Record<string, string | number>>;

const RIGHT_TO_LEFT = /^(ar|dv|fa|he|ps|sd|ug|ur|yi)\b/i;

let english: Readonly<Record<string, Message>> = en;
let catalogue: Readonly<Record<string, Message>> = {};
let locale = "en";
let plurals = new Intl.PluralRules(locale);

/** Show another language from now on. Call it before the first view is drawn: what is drawn is not drawn again. */
export function useCatalogue(tag: string, messages: Readonly<Record<string, Message>>): void {
  locale = tag;
  catalogue = messages;
  plurals = new Intl.PluralRules(formatLocale());
}

/** Translations for views that have been loaded just now. */
export function addTranslations(messages: Readonly<Record<string, Message>>): void {
  catalogue = { ...catalogue, ...messages };
}

/** English texts of views that have been loaded just now. */
export function addMessages(messages: Readonly<Record<string, Message>>): void {
  english = { ...english, ...messages };
}

/** The locale for numbers and dates: that of the texts, or the browser's where it is a variety of the same language. */
export function formatLocale(): string {
  const own = (typeof navigator === "undefined" ? "" : navigator.language ?? "").replace(/-u-va-posix$/, "");
  const base = locale.split("-")[0];
  if (own.split("-")[0] === base) return own;
  return /^(en-xa|ar-xb)$/i.test(locale) ? (own || "en") : locale;
}

/** The text of a message with the values in the place of their names. `count` chooses the plural form. */
export function t(key: MessageKey, values: Values = {}): string {
  return textOf(key, values).replace(/\{(\w+)\}/g, (name, inner) => shown(values[inner], name));
}

/** The text of a message cut at its names: texts and names by turns, for views that put elements there. */
export function segmentsOf(key: MessageKey, values: Values = {}): { text: string; name: string }[] {
  const segments: { text: string; name: string }[] = [];
  textOf(key, values).split(/\{(\w+)\}/).forEach((piece, index) => {
    if (index % 2) segments.push({ text: "", name: piece });
    else if (piece) segments.push({ text: piece, name: "" });
  });
  return segments;
}

function textOf(key: MessageKey, values: Values): string {
  const message: Message = catalogue[key] ?? english[key] ?? key;
  if (typeof message === "string") return message;
  return message[plurals.select(Number(values.count ?? 0))] ?? message.other;
}

function shown(value: string | number | undefined, name: string): string {
  if (typeof value === "number") return new Intl.NumberFormat(formatLocale()).format(value);
  return value === undefined ? name : isolated(value);
}

/** A name or an identifier within a sentence that is read from right to left: its direction does not change the rest. */
const isolated = (value: string): string => RIGHT_TO_LEFT.test(locale) ? `\u2068${value}\u2069` : value;

/** A number as people of the language write it. */
export const formatCount = (count: number): string => new Intl.NumberFormat(formatLocale()).format(count);
