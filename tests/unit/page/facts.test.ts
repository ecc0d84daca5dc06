/// <reference lib="deno.ns" />
// What the panel and the message field say. Run by test_pure_modules.py.

import { commandOf, commandsOf, offered } from "../../../static/src/app/store/commands.ts";
import {
  type ContextPreview,
  fullness,
  kindOf,
  leftOut,
  percent,
  piecesOf,
  policyText,
  usageOf,
} from "../../../static/src/app/store/context_facts.ts";
import {
  changesText,
  documentFacts,
  lineCounts,
  originOf,
  spokenCounts,
  stateOf,
} from "../../../static/src/app/store/overview_facts.ts";
import { type Block, grouped, type MemoryItem, whoDid } from "../../../static/src/app/store/remembered.ts";
import { same } from "./making.ts";

Deno.test("a slash is a command only where there is one", () => {
  same(commandOf("/compact keep\nthe names "), { name: "compact", rest: "keep\nthe names" });
  same(commandOf(" /compact"), { name: "compact", rest: "" });
  same(commandOf("/summarize the names"), { name: "compact", rest: "the names" }); // B4.19
  same([commandOf("/compacted"), commandOf("/etc/hosts"), commandOf("say /compact"), commandOf("")], [
    null,
    null,
    null,
    null,
  ]);
  same(["/undo", "/redo ", "/undo the last change"].map(commandOf), [
    { name: "undo", rest: "" },
    { name: "redo", rest: "" },
    null,
  ]);
  same(["/", "/com", "/compact", "/sum", "/compact x", "/x", "a /"].map((text) => offered(text).length), [
    4,
    1,
    1,
    1,
    0,
    0,
    0,
  ]);
  const own = commandsOf({ commands: [{ name: "co-de", description: "Code", takes_text: true }] });
  same(offered("/co", own).map(({ usage, about }) => [usage, about]), [["/co-de", "Code"], ["/compact", undefined]]);
});

const context = (more: Partial<ContextPreview> = {}) =>
  ({
    context_tokens: 1000,
    usable_tokens: 800,
    total_tokens: 250,
    policy: "whole",
    system: { tokens: 100 },
    tools: [{ tokens: 20 }, { tokens: 30 }],
    summaries: [{ tokens: 40 }],
    tail: { tokens: 60 },
    ...more,
  }) as ContextPreview;

Deno.test("how full a call is, and where it is unknown", () => {
  same(fullness(context()), { share: 0.25, isTight: false, text: "About 250 of 1,000 tokens (25%)" });
  same(fullness(context({ total_tokens: 750 })).isTight, true);
  same(fullness(context({ context_tokens: 0 })).text, "About 250 tokens. This model’s limit isn’t known.");
  same(piecesOf(context()).map((piece) => [piece.key, piece.tokens]), [
    ["system", 100],
    ["person", 0],
    ["project", 0],
    ["tools", 50],
    ["summary", 40],
    ["messages", 60],
  ]);
  same([percent(0), percent(0.004), percent(0.5)], ["0%", "less than 1%", "50%"]);
  const alone = (tokens: number) => usageOf({ tokens, max_tokens: null });
  same([alone(1), alone(1200)], ["1 token", "1,200 tokens"]);
  same([0, 1, 7].map((left_out) => leftOut({ left_out })), [
    "",
    "1 older message doesn’t fit and isn’t sent.",
    "7 older messages don’t fit and aren’t sent.",
  ]);
  same([
    policyText(context()),
    policyText(context({ policy: "" })) !== "",
    [policyText(context({ policy: "read-time" })), policyText(context({ policy: "cache-aware" }))].every(Boolean),
  ], ["", true, true]);
});

Deno.test("blocks say what they are, whose, and how full", () => {
  same(kindOf({ writable: true, of: "user" }), "the model can edit it, yours, in all conversations");
  same(
    kindOf({ writable: true, is_skill: true, of: "session" }),
    "documents the model can load, this conversation only",
  );
  same(kindOf({ writable: false, of: "" }), "read-only");
  same([usageOf({ tokens: 5, max_tokens: null }), usageOf({ tokens: 50, max_tokens: 200 })], [
    "5 tokens",
    "50 of 200 tokens (25%)",
  ]);
});

Deno.test("memory is in groups, each label once", () => {
  const block = (label: string, of: string) => ({ label, of, is_skill: false, is_searchable: false }) as Block;
  const groups = grouped([block("soul", "agent"), block("memory", "user"), block("notes", "session")], [{
    label: "memory",
    entry_count: 2,
  }, { label: "old", entry_count: 0 }] as MemoryItem[]);
  same(groups.map((group) => [group.key, ...group.blocks.map((item) => item.label)]), [["user", "memory", "old"], [
    "session",
    "notes",
  ], ["agent", "soul"]]);
  same(groups[0].blocks.map((item) => [item.entry_count, item.isElsewhere === true]), [[2, false], [0, true]]);
  same([
    whoDid({ via: "model", action: "append" }),
    whoDid({ via: "api", action: "delete" }),
    whoDid({ via: "admin", action: "set" }),
  ], ["The model added to", "You deleted", "An administrator wrote"]);
});

Deno.test("an overview says whose words they are, and whether they are up to date", () => {
  const summary = { text: "About tea.", model_name: "a/b", is_own: false, is_current: true, state: "" };
  same(originOf(summary, "14:31"), "By a/b, 14:31.");
  same(
    originOf({ ...summary, is_own: true, is_current: false }, "14:31"),
    "Written by you, 14:31. The conversation has moved on since.",
  );
  same(originOf({ ...summary, text: "" }, ""), "");
  same((["", "waiting", "running"] as const).map((state) => stateOf({ state })), [
    "",
    "The summary is about to be written.",
    "A model is writing the summary.",
  ]);
});

Deno.test("what was changed is counted for eyes and for ears", () => {
  same(lineCounts({ additions: 3, deletions: 1 }), "+3 −1");
  same(lineCounts({ additions: 0, deletions: 0 }), "");
  same(spokenCounts({ additions: 1, deletions: 0 }), "1 line added, 0 lines removed");
  same(documentFacts({ label: "docs", key: "tea", status: "deleted", of: "user" }), {
    name: "docs / tea",
    note: "deleted, about you",
  });
  same(documentFacts({ label: "notes", key: null, status: "modified", of: "session" }), { name: "notes", note: "" });
  const one = { label: "notes", key: null, status: "modified", of: "session" };
  same(
    changesText({ documents: [], additions: 0, deletions: 0 }),
    "Nothing in memory was changed in this conversation.",
  );
  same(changesText({ documents: [one], additions: 2, deletions: 0 }), "1 text in memory changed (+2).");
  same(
    changesText({ documents: [one, one], additions: 0, deletions: 0, has_more_documents: true }),
    "More than 2 texts changed (too long to compare).",
  );
});
