// What the overview of a conversation says, in words. Pure: the API's answer in, sentences out.

import { type MessageKey, t } from "../lib/i18n.ts";
import type { Schemas } from "../net/api.ts";
import { count } from "./context_facts.ts";

export type Overview = Schemas["SessionSummaryOut"];
export type ChangedText = Schemas["DocumentDiffOut"];

/** Where the text of the summary comes from; empty where there is none. `when`: its instant in words. */
export function originOf(
  summary: Pick<Overview, "text" | "is_own" | "model_name" | "is_current">,
  when: string,
): string {
  if (!summary.text) return "";
  const origin = summary.is_own
    ? t("panel.origin-own", { when })
    : t("panel.origin-model", { model: summary.model_name, when });
  return summary.is_current ? origin : t("panel.origin-outdated", { origin });
}

const STATES: { readonly [state: string]: MessageKey } = {
  waiting: "panel.summary-waiting",
  running: "panel.summary-running",
};

/** What is being done about it; empty when nothing is. */
export function stateOf({ state }: Pick<Overview, "state">): string {
  return Object.hasOwn(STATES, state) ? t(STATES[state]) : "";
}

type Counts = Pick<ChangedText, "additions" | "deletions">;

/** "+3 −1"; a side without changes is left out. */
export const lineCounts = ({ additions, deletions }: Counts): string =>
  [additions && `+${count(additions)}`, deletions && `−${count(deletions)}`].filter(Boolean).join(" ");

/** The same for ears. */
export const spokenCounts = ({ additions, deletions }: Counts): string =>
  t("panel.spoken-counts", {
    added: t("panel.lines-added", { count: additions }),
    removed: t("panel.lines-removed", { count: deletions }),
  });

const FATES: { readonly [status: string]: MessageKey } = { added: "panel.fate-new", deleted: "panel.fate-deleted" };

/** A changed text. */
export interface DocumentFacts {
  name: string;
  note: string;
}

export function documentFacts(
  { label, key, status, of }: Pick<ChangedText, "label" | "key" | "status" | "of">,
): DocumentFacts {
  const fate = Object.hasOwn(FATES, status) ? t(FATES[status]) : "";
  const whose = of === "user" ? t("panel.about-you") : "";
  return { name: key ? `${label} / ${key}` : label, note: [fate, whose].filter(Boolean).join(", ") };
}

/** What is said above the list of changed texts. */
export function changesText(
  summary: Pick<Overview, "additions" | "deletions"> & {
    documents: readonly unknown[];
    has_more_documents?: boolean;
  },
): string {
  const values = { count: summary.documents.length, lines: lineCounts(summary) || t("panel.too-long-to-compare") };
  if (!values.count) return t("panel.nothing-changed");
  return t(summary.has_more_documents ? "panel.more-texts-changed" : "panel.texts-changed", values);
}
