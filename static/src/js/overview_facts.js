// What the overview of a conversation says, in words. Pure: the API's answer in, sentences out.

import { several } from "./context_facts.js";

/** Where the text of the summary comes from; empty where there is none. `when`: its instant in words. */
export function originOf(summary, when) {
  if (!summary.text) return "";
  const who = summary.is_own ? "Your own words" : `By ${summary.model_name}`;
  return `${who}, ${when}.${summary.is_current ? "" : " Something was said or chosen since."}`;
}

/** Shown in place of a missing summary. */
export const NOTHING = "There is no summary of this conversation yet.";

const STATES = { waiting: "A summary is asked for.", running: "A model is writing it." };

/** What is being done about it; empty when nothing is. */
export const stateOf = (summary) => STATES[summary.state] ?? "";

/** "+3 −1"; a side without changes is left out. */
export const lineCounts = ({ additions, deletions }) =>
  [additions && `+${additions}`, deletions && `−${deletions}`].filter(Boolean).join(" ");

/** The same for ears. */
export const spokenCounts = ({ additions, deletions }) =>
  `${several(additions, "line")} added, ${several(deletions, "line")} removed`;

const FATES = { added: "new", deleted: "deleted", modified: "" };

/** A changed text: {name, note}. */
export function documentFacts(document) {
  const name = document.key ? `${document.label} / ${document.key}` : document.label;
  const whose = document.of === "user" ? "about you" : "";
  return { name, note: [FATES[document.status], whose].filter(Boolean).join(", ") };
}

/** What is said above the list of changed texts. */
export function changesText(summary) {
  const { documents, has_more_documents: hasMore } = summary;
  if (!documents.length) return "Nothing that is remembered was changed in this conversation.";
  return `${hasMore ? "More than " : ""}${several(documents.length, "text")} of what is remembered, ${
    lineCounts(summary) || "too long to compare"
  }.`;
}
