// What is known of a model, in words.

import { formatLocale, type MessageKey, t } from "../lib/i18n.ts";
import { money } from "../lib/format.ts";
import type { ModelFacts } from "../store/models.ts";

const INPUTS: Record<string, MessageKey> = {
  image: "choice.reads-images",
  document: "choice.reads-documents",
};

const EFFORTS: Record<string, MessageKey> = {
  none: "choice.effort-none",
  minimal: "choice.effort-minimal",
  low: "choice.effort-low",
  medium: "choice.effort-medium",
  high: "choice.effort-high",
  xhigh: "choice.effort-xhigh",
};

/** 400000 as "400K". */
const compact = (count: number): string =>
  new Intl.NumberFormat(formatLocale(), { notation: "compact", maximumFractionDigits: 1 }).format(count);

/** A list of words: "a, b, c". */
const listed = (words: string[]): string =>
  new Intl.ListFormat(formatLocale(), { style: "short", type: "unit" }).format(words);

/** The lines under a model's name: what it costs, how much it holds, what it reads, what else it can do. */
export function modelFacts(model: ModelFacts): string[] {
  const { prices, context_tokens: context, inputs, calls_tools: callsTools, reasons } = model;
  const lines: string[] = [];
  if (prices) lines.push(t("choice.prices", { input: money(prices.input), output: money(prices.output) }));
  const second: string[] = [];
  if (context) second.push(t("choice.context", { size: compact(context) }));
  const kinds = (inputs ?? []).map((kind) => (INPUTS[kind] ? t(INPUTS[kind]) : kind));
  if (inputs) second.push(kinds.length ? t("choice.reads", { kinds: listed(kinds) }) : t("choice.reads-text"));
  if (second.length) lines.push(second.join(" · "));
  const third: string[] = [];
  if (callsTools !== null) third.push(t(callsTools ? "choice.tools" : "choice.no-tools"));
  if (reasons) third.push(t("choice.reasons"));
  if (third.length) lines.push(third.join(" · "));
  return lines;
}

/** How much a model thinks, in words; one that is not known here is said as the server says it. */
export const effortLabel = (effort: string): string => (EFFORTS[effort] ? t(EFFORTS[effort]) : effort);
