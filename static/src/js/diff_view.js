// Hunks of a unified diff as lines that differ by their sign as well as by their colour.

import { h } from "./dom.js";

const KINDS = { "+": "is-added", "-": "is-gone", "@": "is-place" };

/** `patch`: hunks without file names. `label`: what it is a diff of. */
export function diffNode(patch, label) {
  const lines = patch.split("\n").map((line) => h("span", { class: KINDS[line[0]] ?? null, text: `${line}\n` }));
  return h("pre", { class: "diff", tabindex: "0", role: "group", "aria-label": label }, lines);
}
