// Hunks of a unified diff as lines that differ by their sign as well as by their colour.

import { diffLines } from "../app/lib/diff.ts";
import { h } from "./dom.js";

/** `patch`: hunks without file names. `label`: what it is a diff of. */
export function diffNode(patch, label) {
  const lines = diffLines(patch).map(({ kind, text }) =>
    h("span", { class: kind === "same" ? null : `is-${kind}`, text: `${text}\n` })
  );
  return h("pre", { class: "diff", tabindex: "0", role: "group", "aria-label": label }, lines);
}
