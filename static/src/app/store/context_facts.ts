// What the next model call will contain, as rows and shares. Pure: the API's answer in, words and figures out.

import { formatLocale, type MessageKey, t } from "../lib/i18n.ts";
import type { Schemas } from "../net/api.ts";

type Block = Schemas["BlockOut"];

export type ContextPreview = Schemas["PreviewOut"];
export type Usage = Schemas["SpendingOut"];

/** A number as people of the page's language read it. */
export const count = (value: number): string => new Intl.NumberFormat(formatLocale()).format(value);

/** A piece of a call. */
export interface Piece {
  key: "system" | "person" | "project" | "tools" | "summary" | "messages";
  label: string;
  tokens: number;
}

const total = (items: readonly { tokens: number }[]) => items.reduce((sum, item) => sum + item.tokens, 0);

/** The pieces of a call in the order in which a model reads them; those without tokens are left out of the bar. */
export function piecesOf(
  context:
    & Pick<ContextPreview, "system" | "tools" | "summaries" | "tail">
    & Partial<Pick<ContextPreview, "instructions" | "project">>,
): Piece[] {
  return [
    { key: "system", label: t("panel.piece-system"), tokens: context.system.tokens },
    { key: "person", label: t("panel.piece-person"), tokens: context.instructions?.tokens ?? 0 },
    { key: "project", label: t("panel.piece-project"), tokens: context.project?.tokens ?? 0 },
    { key: "tools", label: t("panel.piece-tools"), tokens: total(context.tools) },
    { key: "summary", label: t("panel.piece-summary"), tokens: total(context.summaries) },
    { key: "messages", label: t("panel.piece-messages"), tokens: context.tail.tokens },
  ];
}

/** How full the model's context is. `share` of it, 0 where its size is not known; `isTight`: little more goes in. */
export interface Fullness {
  share: number;
  text: string;
  isTight: boolean;
}

export function fullness(
  { total_tokens: used, context_tokens: size, usable_tokens: usable }: Pick<
    ContextPreview,
    "total_tokens" | "context_tokens" | "usable_tokens"
  >,
): Fullness {
  if (!size) return { share: 0, isTight: false, text: t("panel.size-unknown", { count: used }) };
  const share = used / size;
  return {
    share,
    isTight: used > (usable || size) * 0.9,
    text: t("panel.size", { used, count: size, share: percent(share) }),
  };
}

/** A share in whole per cents. */
export function percent(share: number): string {
  if (share > 0 && share < 0.01) return t("panel.less-than-one");
  return t("panel.percent", { share: Math.round(share * 100) });
}

/** How full a block is: a share of its limit, or its tokens. */
export function usageOf({ tokens, max_tokens: most }: Pick<Block, "tokens" | "max_tokens">): string {
  if (!most) return t("panel.tokens", { count: tokens });
  return t("panel.tokens-of", { used: tokens, count: most, share: percent(tokens / most) });
}

/** Whether little more goes into a block: nine tenths of its limit. */
export const isNearlyFull = ({ tokens, max_tokens: most }: Pick<Block, "tokens" | "max_tokens">): boolean =>
  Boolean(most) && tokens >= most! * 0.9;

type Kind = "writable" | "readonly" | "loadable" | "searchable";
type Kinds = Pick<Block, "writable"> & Partial<Pick<Block, "is_skill" | "is_searchable">>;

/** The kind of a block, in the word that the model reads. */
export function kindWord(block: Kinds): Kind {
  if (block.is_skill) return "loadable";
  if (block.is_searchable) return "searchable";
  return block.writable ? "writable" : "readonly";
}

const KINDS: { readonly [kind in Kind]: MessageKey } = {
  writable: "panel.kind-writable",
  readonly: "panel.kind-readonly",
  loadable: "panel.kind-loadable",
  searchable: "panel.kind-searchable",
};
const WHOSE: { readonly [owner: string]: MessageKey } = {
  user: "panel.of-user",
  session: "panel.of-session",
  agent: "panel.of-agent",
};

/** "editable by the model, yours in all conversations". `of`: "" says nothing of that. */
export function kindOf(block: Kinds & Pick<Block, "of">): string {
  const whose = WHOSE[block.of];
  return [t(KINDS[kindWord(block)]), whose ? t(whose) : ""].filter(Boolean).join(", ");
}

const POLICIES: { readonly [policy: string]: MessageKey } = {
  "": "panel.policy-own",
  "cache-aware": "panel.policy-cache-aware",
  "read-time": "panel.policy-read-time",
  "last-calls": "panel.policy-last-calls",
  coding: "panel.policy-coding",
  prune: "panel.policy-prune",
};

/** What becomes of the messages on their way to the model; empty when nothing does. */
export function policyText({ policy }: Pick<ContextPreview, "policy">): string {
  return Object.hasOwn(POLICIES, policy) ? t(POLICIES[policy]) : "";
}

/** What is not sent of the conversation, in a sentence; empty when everything is. */
export function leftOut({ left_out: count }: Pick<ContextPreview["tail"], "left_out">): string {
  return count ? t("panel.left-out", { count }) : "";
}
