// Checks of what the panel and the lines of summaries say, without a page. Run by test_pure_modules.py.

import { commandOf, offered } from "../../../static/src/js/commands.js";
import {
  fullness,
  kindOf,
  leftOut,
  percent,
  piecesOf,
  policyText,
  several,
  usageOf,
} from "../../../static/src/js/context_facts.js";
import { money, turnFacts, usageFacts } from "../../../static/src/app/lib/format.ts";
import { linesOf } from "../../../static/src/js/overlays.js";
import {
  changesText,
  documentFacts,
  lineCounts,
  originOf,
  spokenCounts,
  stateOf,
} from "../../../static/src/js/overview_facts.js";
import { grouped, whoDid } from "../../../static/src/js/remembered.js";
import { statusOf } from "../../../static/src/js/status_line.js";
import { Summaries } from "../../../static/src/js/summaries.js";
import { Transcript } from "../../../static/src/js/transcript.js";

function same(found, wanted) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${a} is not ${b}`);
}

const path = [..."abcdefgh"].map((id) => ({ id }));
const summary = (id, first, last, more = {}) => ({ id, first_id: first, last_id: last, undone_at: null, ...more });
const linesAt = (messages, ...compactions) =>
  [...linesOf(messages, compactions)].sort().map((
    [id, items],
  ) => [id, ...items.map((item) => `${item.compaction.id}${item.isUsed ? "+" : "-"}`)]);

Deno.test("the line of a summary stands below the last message that it covers", () => {
  same(linesAt(path, summary("s", "b", "d")), [["d", "s+"]]);
  same(linesAt(path, summary("s", "d", "d")), [["d", "s+"]]);
  same(linesAt(path), []);
});

Deno.test("one that was undone, or ends on another branch, has no line", () => {
  same(
    linesAt(path, summary("s", "b", "d", { undone_at: "2026-05-20T12:00:00Z" }), summary("t", "b", "elsewhere")),
    [],
  );
});

Deno.test("a later summary covers an earlier one; of two with one end the newer counts", () => {
  same(linesAt(path, summary("old", "b", "d"), summary("new", "b", "f")), [["d", "old-"], ["f", "new+"]]);
  same(linesAt(path, summary("old", "b", "d"), summary("new", "c", "d")), [["d", "new+", "old-"]]);
  same(linesAt(path, summary("one", "a", "b"), summary("two", "d", "f")), [["b", "one+"], ["f", "two+"]]);
});

Deno.test("what a summary covers may begin on a page that is not loaded", () => {
  same(linesAt(path.slice(4), summary("old", "a", "e"), summary("new", "b", "g")), [["e", "old-"], ["g", "new+"]]);
});

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
  same(["/", "/com", "/compact", "/sum", "/compact x", "/x", "a /"].map((text) => offered(text).length), [
    1,
    1,
    1,
    1,
    0,
    0,
    0,
  ]);
});

const context = (more = {}) => ({
  context_tokens: 1000,
  usable_tokens: 800,
  total_tokens: 250,
  policy: "whole",
  system: { tokens: 100 },
  tools: [{ tokens: 20 }, { tokens: 30 }],
  summaries: [{ tokens: 40 }],
  tail: { tokens: 60 },
  ...more,
});

Deno.test("how full a call is, and where it is unknown", () => {
  same(fullness(context()), { share: 0.25, isTight: false, text: "About 250 of 1,000 tokens, 25 %." });
  same(fullness(context({ total_tokens: 750 })).isTight, true);
  same(fullness(context({ context_tokens: 0 })).text, "About 250 tokens. How much this model can read is not known.");
  same(piecesOf(context()).map((piece) => [piece.key, piece.tokens]), [
    ["system", 100],
    ["tools", 50],
    ["summary", 40],
    ["messages", 60],
  ]);
  same([percent(0), percent(0.004), percent(0.5), several(1, "token"), several(1200, "token")], [
    "0 %",
    "less than 1 %",
    "50 %",
    "1 token",
    "1,200 tokens",
  ]);
  same([0, 1, 7].map((left_out) => leftOut({ left_out })), [
    "",
    "1 older message is beyond what is sent.",
    "7 older messages are beyond what is sent.",
  ]);
  same([
    policyText(context()),
    policyText(context({ policy: "" })) !== "",
    policyText(context({ policy: "read-time" })) !== "",
  ], ["", true, true]);
});

Deno.test("blocks say what they are, whose, and how full", () => {
  same(kindOf({ writable: true, of: "user" }), "the model can write, yours, in all conversations");
  same(kindOf({ writable: true, is_skill: true, of: "session" }), "documents to load, of this conversation");
  same(kindOf({ writable: false, of: "" }), "read only");
  same([usageOf({ tokens: 5, max_tokens: null }), usageOf({ tokens: 50, max_tokens: 200 })], [
    "5 tokens",
    "50 of 200 tokens, 25 %",
  ]);
});

Deno.test("memory is in groups, each label once", () => {
  const block = (label, of) => ({ label, of, is_skill: false, is_searchable: false });
  const groups = grouped([block("soul", "agent"), block("memory", "user"), block("notes", "session")], [{
    label: "memory",
    entry_count: 2,
  }, { label: "old", entry_count: 0 }]);
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

Deno.test("costs have the digits that it takes to see them, and none where nothing is paid", () => {
  same(["0", "1.5", "0.1234", "0.00123", "0.0000012"].map(money), ["$0.00", "$1.50", "$0.12", "$0.0012", "$0.000001"]);
  same(
    turnFacts({ status: "completed", model: "m", input_tokens: 2, output_tokens: 1, cost: "0.0200000000" }).short,
    "m · 3 tokens · $0.02",
  );
  same(
    turnFacts({ status: "completed", model: "m", input_tokens: 2, output_tokens: 1, cost: "0E-10" }).short,
    "m · 3 tokens",
  );
  same(
    usageFacts({ total: { input_tokens: 1200, output_tokens: 30, cost: "0.5" } }),
    "The conversation so far: 1,200 tokens read, 30 written, $0.50",
  );
});

const state = (more) => ({ instance: { id: "i" }, messages: [], isLoaded: true, running: null, failed: null, ...more });
const none = { entries: [] };

Deno.test("a summary that is made, waited for, or failed is said", () => {
  const running = { phase: "waiting" };
  same(statusOf(state({ compacting: "running", running }), none).text, "Summarising older messages");
  same(statusOf(state({ compacting: "waiting", running }), none).text, "Waiting for the model");
  same(statusOf(state({ compacting: "waiting" }), none).text, "Waiting to summarise older messages");
  const failed = statusOf(state({ compactionError: "Too slow." }), none);
  same([failed.text, failed.actions.map((action) => action.label)], [
    "Older messages could not be summarised: Too slow.",
    ["Try again", "Dismiss"],
  ]);
});

function panelWith(answers = {}) {
  const listeners = {};
  const said = [];
  const conversation = {
    instance: { id: "i" },
    on: (name, listener) => (listeners[name] = listener),
    emit: () => {},
    looks: 0,
  };
  conversation.refreshSoon = () => (conversation.looks += 1);
  const api = { compactions: () => Promise.resolve([]), compact: () => Promise.resolve(), ...answers };
  const summaries = new Summaries(api, conversation, (text) => said.push(text));
  return {
    conversation,
    summaries,
    said,
    frame: (phase, more = {}) => listeners.session({ phase, ...more }),
    fail: (text) => listeners["session-failed"](text),
  };
}

Deno.test("a page tells of a summary until a frame does: a page may be older than the frame", () => {
  const transcript = new Transcript({}, { id: "i" });
  transcript.isClosed = true; // no look later
  const summaries = new Summaries({ compactions: () => Promise.resolve([]) }, transcript, () => {});
  transcript.takePage({ compacting: "running" });
  same(transcript.compacting, "running");
  transcript.emit("session", { phase: "idle", compacted: { tokensBefore: 9 } });
  transcript.takePage({ compacting: "running" }); // its row ends a moment after the word that it has ended
  same(transcript.compacting, "");
  transcript.emit("reconnected");
  transcript.takePage({ compacting: "waiting" });
  same([transcript.compacting, Boolean(summaries)], ["waiting", true]);
  clearTimeout(transcript.compactionTimer);
});

Deno.test("a frame about one history does not count in another", () => {
  const transcript = new Transcript({}, { id: "i" });
  transcript.isClosed = true; // no look later
  const summaries = new Summaries({ compactions: () => Promise.resolve([]) }, transcript, () => {});
  transcript.takePage({ session_id: "one" });
  transcript.emit("session", { phase: "compacting" }); // its end goes to those who show it then
  transcript.takePage({ session_id: "two", compacting: "" });
  same([transcript.compacting, Boolean(summaries)], ["", true]);
});

Deno.test("summaries are read again when another history is shown, and only then", () => {
  const reads = [];
  const transcript = new Transcript({}, { id: "i" });
  new Summaries({ compactions: () => Promise.resolve((reads.push(1), [])) }, transcript, () => {});
  const show = (...ids) => transcript.takePage({ items: ids.map((id) => ({ id, role: "user" })) });
  show("a", "b");
  show("a", "b", "c");
  same(reads.length, 1);
  show("x", "y");
  same(reads.length, 2);
  show();
  show("y");
  same(reads.length, 3);
});

Deno.test("what was asked for ends with a word: done, nothing to do, or failed", async () => {
  const done = panelWith();
  await done.summaries.ask("keep");
  same(done.conversation.compacting, "waiting");
  done.frame("compacting");
  same(done.conversation.compacting, "running");
  done.frame("idle", { compacted: { tokensBefore: 9 } });
  same([done.conversation.compacting, done.said], ["", ["Older messages were summarised."]]);
  done.frame("idle"); // another page changed a summary: nothing was requested here
  same(done.said.length, 1);

  const nothing = panelWith();
  await nothing.summaries.ask("");
  nothing.frame("idle"); // how full it is after the turn that comes first: what was asked for still waits
  same([nothing.said, nothing.conversation.compacting, nothing.conversation.looks], [[], "waiting", 1]);
  nothing.frame("compacting");
  nothing.frame("idle");
  same(nothing.said, ["There is nothing to summarise yet."]);

  const broken = panelWith();
  await broken.summaries.ask("");
  broken.frame("compacting");
  broken.fail("Too slow.");
  broken.frame("idle");
  same([broken.conversation.compactionError, broken.said], ["Too slow.", ["Summarising failed."]]);
  const refused = panelWith({ compact: () => Promise.reject(new Error("Not now.")) });
  await refused.summaries.ask("");
  same([refused.conversation.compactionError, refused.conversation.compacting], ["Not now.", ""]);
});

Deno.test("an overview says whose words they are, and whether they are up to date", () => {
  const summary = { text: "About tea.", model_name: "a/b", is_own: false, is_current: true, state: "" };
  same(originOf(summary, "14:31"), "By a/b, 14:31.");
  same(
    originOf({ ...summary, is_own: true, is_current: false }, "14:31"),
    "Your own words, 14:31. Something was said or chosen since.",
  );
  same(originOf({ ...summary, text: "" }, ""), "");
  same(["", "waiting", "running"].map((state) => stateOf({ state })), [
    "",
    "A summary is asked for.",
    "A model is writing it.",
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
    "Nothing that is remembered was changed in this conversation.",
  );
  same(changesText({ documents: [one], additions: 2, deletions: 0 }), "1 text of what is remembered, +2.");
  same(
    changesText({ documents: [one, one], additions: 0, deletions: 0, has_more_documents: true }),
    "More than 2 texts of what is remembered, too long to compare.",
  );
});

Deno.test("a page that was asked for before an answer ended does not take it out of sight", async () => {
  const pages = [];
  const transcript = new Transcript({ messages: () => new Promise((done) => pages.push(done)) }, { id: "i" });
  const early = transcript.refresh();
  transcript.messages = [{ id: "q", role: "user" }, { id: "a", role: "assistant" }]; // as frames sent them meanwhile
  await new Promise((done) => setTimeout(done, 2));
  transcript.fresh.moved();
  pages[0]({ items: [] });
  await early;
  same(transcript.messages.map((item) => item.id), ["q", "a"]);
  const later = transcript.refresh();
  pages.at(-1)({ items: [{ id: "b", role: "user" }] }); // another tab has chosen another version
  await later;
  same(transcript.messages.map((item) => item.id), ["b"]);
  for (let times = 0; times < 5; times += 1) {
    const read = transcript.refresh();
    await new Promise((done) => setTimeout(done, 2));
    transcript.fresh.moved(); // one end follows another: sooner or later a page counts
    pages.at(-1)({ items: [{ id: "c", role: "user" }] });
    await read;
  }
  same(transcript.messages.map((item) => item.id), ["c"]);
  transcript.isClosed = true;
  clearTimeout(transcript.refreshTimer);
});
