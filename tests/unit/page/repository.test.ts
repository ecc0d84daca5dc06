/// <reference lib="deno.ns" />
// What is said of a repository's files. Run by test_pure_modules.py.

import "../../../static/src/app/messages/later.ts";
import type { RepositoryChange } from "../../../static/src/app/net/files_api.ts";
import { fateOf, markOf, shortCommit } from "../../../static/src/app/store/repository_facts.ts";
import { same } from "./making.ts";

const CHANGE: RepositoryChange = { path: "/a", kind: "updated", is_tracked: true, staged: "none", was: "" };

Deno.test("a file is said to be changed, created, deleted or moved", () => {
  const kinds = ["updated", "created", "deleted"] as const;
  same(kinds.map((kind) => fateOf({ ...CHANGE, kind })), ["changed", "created", "deleted"]);
  same(fateOf({ ...CHANGE, was: "/old\u202ename" }).includes("\u202e"), false);
  same(fateOf({ ...CHANGE, was: "/b" }), "moved from /b");
});

Deno.test("how git has a file is said where it is not the usual", () => {
  const staged = ["none", "part", "all"] as const;
  same(staged.map((each) => markOf({ ...CHANGE, staged: each })), ["", "partly staged", "staged"]);
  same(markOf({ ...CHANGE, is_tracked: false }), "untracked");
});

Deno.test("a commit is named by its beginning", () => {
  same(shortCommit("0123456789abcdef"), "0123456789");
  same(shortCommit(""), "");
});
