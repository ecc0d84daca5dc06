/// <reference lib="deno.ns" />
// Laying pages and transcripts over the list. Run by test_pure_modules.py.

import { Freshness } from "../../../static/src/app/store/freshness.ts";
import {
  fromPage,
  type Merge,
  mergeNewest,
  mergeTranscript,
  refreshKnown,
} from "../../../static/src/app/store/path.ts";
import { frozen, idsOf, item, listed, message, page, same } from "./making.ts";

const changesOf = ({ updates }: Pick<Merge, "updates">) =>
  updates.map(({ message, change }) => [message.id, ...Object.keys(change)]);

Deno.test("the newest page is laid over the list: older ones that lead to it stay, another branch replaces", () => {
  const merged = mergeNewest(
    listed("a", "b", "c"),
    fromPage(page({ items: [item("b"), item("c"), item("d")], has_more: true })),
    null,
  );
  same(idsOf(merged), ["a", "b", "c", "d"]);
  const other = mergeNewest(merged, fromPage(page({ items: [item("x"), item("y")], has_more: false })), null);
  same([idsOf(other), other.hasMore], [["x", "y"], false]);
});

Deno.test("a message being streamed keeps its own, newer parts", () => {
  const live = message("a", { role: "assistant", parts: [{ type: "text", text: "newer" }], isLive: true });
  const shown = { ...listed("q"), messages: [message("q"), live] };
  const merged = mergeNewest(shown, fromPage(page({ items: [item("q"), item("a", { role: "assistant" })] })), live);
  same([merged.messages[1] === live, live.isLive, changesOf(merged)], [true, true, []]);
  same(live.parts, [{ type: "text", text: "newer" }]);
});

Deno.test("on return from elsewhere the streaming answer is the same object, wherever it was read", () => {
  const live = message("a", { role: "assistant", parts: [], isLive: true });
  const merged = mergeNewest(listed("x"), fromPage(page({ items: [item("q"), item("a")] })), live);
  same([idsOf(merged), merged.messages[1] === live], [["q", "a"], true]);
  const framed = mergeTranscript(listed("q"), [item("q"), item("a")], live);
  same([idsOf(framed), framed.messages[1] === live], [["q", "a"], true]);
});

Deno.test("a transcript frame keeps older pages and lists queued messages apart", () => {
  const merged = mergeTranscript(
    listed("a", "b"),
    [item("b"), item("c"), item("q", { metadata: { queued: true } })],
    null,
  );
  same([idsOf(merged), merged.queued.map(({ id }) => id), merged.leafId], [["a", "b", "c"], ["q"], "c"]);
  same(merged.queued[0].isStopped, false);
  const later = mergeTranscript(merged, [item("c"), item("q", { metadata: { queued: true, stopped: true } })], null);
  same([
    later.queued[0] === merged.queued[0],
    later.updates.find(({ message }) => message.id === "q")?.change.isStopped,
  ], [
    true,
    true,
  ]);
  const ended = { finished_at: "2026-05-20T12:00:00Z" };
  const queued = [
    { ...item("q"), queued: true, turn: ended },
    { ...item("r"), queued: true, turn: { finished_at: null } },
  ];
  same(fromPage(page({ queued })).queued.map((message) => message.isStopped), [true, false]);
});

Deno.test("a question that waited until its answer began is put above it", () => {
  const answer = message("a1", { parts: [], isLive: true });
  const begun = { ...listed(), hasMore: false, messages: [answer] };
  same(idsOf(mergeTranscript(begun, [item("q1"), item("a1")], answer)), ["q1", "a1"]);
  const long = mergeTranscript(listed("b", "c"), [item("a"), item("b"), item("c"), item("d")], null);
  same(idsOf(long), ["b", "c", "d"]); // what lies above comes by pages
});

Deno.test("merging changes nothing that it is given", () => {
  const live = message("d", { role: "assistant", isLive: true });
  const shown = frozen({ ...listed("a", "b"), messages: [...listed("a", "b").messages, live], queued: [message("q")] });
  const raw = frozen([
    item("b", { parts: [{ type: "text", text: "other" }], sibling_ids: ["b", "b2"] }),
    item("c"),
    item("q", { metadata: { queued: true } }),
  ]);
  const newest = frozen(fromPage(page({ items: raw, queued: [item("q")], leaf_id: "c" })));
  const merged = mergeNewest(shown, newest, live);
  same([idsOf(merged), merged.leafId], [["a", "b", "c", "q", "d"], "c"]);
  same(changesOf(merged), [["b", "siblings", "parts"]]);
  same([idsOf(mergeTranscript(shown, raw, live)), changesOf({ updates: refreshKnown(shown.messages, newest) })], [
    ["a", "b", "c", "d"],
    [["b", "siblings", "parts"]],
  ]);
});

Deno.test("what is the same stays the same object, so that nothing is drawn for it", () => {
  const turn = { id: "t", status: "completed", model: "m", input_tokens: 1, output_tokens: 2, finished_at: null };
  const raw = () => [{ ...item("a"), sibling_ids: ["a", "b"], turn: { ...turn }, tool_ms: { c: 4 } }];
  const first = mergeNewest(listed(), fromPage(page({ items: raw() })), null);
  const second = mergeNewest(first, fromPage(page({ items: raw() })), null);
  same([second.messages[0] === first.messages[0], second.updates.length], [true, 0]);
  const third = mergeNewest(
    second,
    fromPage(page({ items: [{ ...raw()[0], turn: { ...turn, status: "failed" } }] })),
    null,
  );
  same([third.messages[0] === first.messages[0], changesOf(third)], [true, [["a", "turn"]]]);
});

Deno.test("what only this browser notes is no difference", () => {
  const call = { type: "tool-read" as const, toolCallId: "c", state: "output-available" as const };
  const noted = { ...call, toolName: "read", startedAt: 1, endedAt: 2 };
  const shown = { ...listed(), messages: [message("a", { parts: [noted] })] };
  same(mergeNewest(shown, fromPage(page({ items: [item("a", { parts: [call] })] })), null).updates, []);
});

Deno.test("of a page and a transcript the one with less changes is older; what has no number may hold all", () => {
  const fresh = new Freshness();
  fresh.note(3);
  fresh.note(2);
  same([fresh.version, fresh.isOlder(2), fresh.isOlder(3), fresh.isOlder()], [3, true, false, false]);
  const now = performance.now() + 1;
  same([fresh.isTooOld(3, now), fresh.isTooOld(2, now)], [false, true]);
  same([1, 2, 3].map(() => fresh.isTooOld(2, now)), [true, true, false]); // not for ever
  fresh.restart();
  same([fresh.version, fresh.isTooOld(1, now)], [0, false]);
});
