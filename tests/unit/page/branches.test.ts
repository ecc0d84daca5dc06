/// <reference lib="deno.ns" />
// The forks of a conversation as rows of a tree. Run by test_pure_modules.py.

import type { BranchNode } from "../../../static/src/app/net/branches_api.ts";
import { parentOf, rowsOf } from "../../../static/src/app/store/branch_rows.ts";
import { same } from "./making.ts";

const node = (id: string, parent: string | null): BranchNode => ({
  id,
  parent_id: parent,
  role: "user",
  text: id,
  model: "",
  created_at: "2026-05-20T12:00:00Z",
  message_count: 1,
  is_shown: false,
});
const TREE = [
  node("q", null),
  node("run", "q"),
  node("fork", "run"),
  node("a", "fork"),
  node("a2", "a"),
  node("a3", "a2"),
]
  .concat([node("b", "fork")]);
const shown = (nodes: readonly BranchNode[], ...closed: string[]) =>
  rowsOf(nodes, new Set(closed)).map(({ node, level, position, size }) => `${node.id} ${level} ${position}/${size}`);

Deno.test("only forks, and what follows the first message of a branch, are a level deeper", () => {
  same(shown(TREE), ["q 1 1/3", "run 1 2/3", "fork 1 3/3", "a 2 1/2", "a2 3 1/2", "a3 3 2/2", "b 2 2/2"]);
});

Deno.test("what is below a closed row is not in sight, and comes back as it was", () => {
  same(shown(TREE, "a"), ["q 1 1/3", "run 1 2/3", "fork 1 3/3", "a 2 1/2", "b 2 2/2"]);
  same(shown(TREE, "a", "fork"), ["q 1 1/3", "run 1 2/3", "fork 1 3/3"]);
  same(rowsOf(TREE, new Set(["a"])).map(({ isOpen }) => isOpen), [undefined, undefined, true, false, undefined]);
});

Deno.test("several first messages are branches too", () => {
  const nodes = [node("q", null), node("a", "q"), node("other", null), node("b", "other")];
  same(shown(nodes), ["q 1 1/2", "a 2 1/1", "other 1 2/2", "b 2 1/1"]);
});

Deno.test("the row above is known, at the top there is none", () => {
  const rows = rowsOf(TREE, new Set());
  same(parentOf(rows, rows[4])?.node.id, "a");
  same(parentOf(rows, rows[0]), undefined);
});
