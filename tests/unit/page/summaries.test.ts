/// <reference lib="deno.ns" />
// Summaries of one conversation: the lines in the list, and the verbs. Run by test_pure_modules.py.

import { linesOf } from "../../../static/src/app/store/overlays.ts";
import { Summaries, type SummariesApi } from "../../../static/src/app/store/summaries.ts";
import { Transcript } from "../../../static/src/app/store/transcript.ts";
import type { SessionFrame } from "../../../static/src/app/net/frames.ts";
import type { Compaction } from "../../../static/src/app/store/types.ts";
import { apiOf, instance, page, pause, same } from "./making.ts";

const path = [..."abcdefgh"].map((id) => ({ id }));
const summary = (id: string, first: string, last: string, more: Partial<Compaction> = {}) =>
  ({ id, first_id: first, last_id: last, undone_at: null, ...more }) as Compaction;
const linesAt = (messages: { id: string }[], ...compactions: Compaction[]) =>
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

/** A conversation that counts its wishes to be read again. */
class Looking extends Transcript {
  looks = 0;

  override refreshSoon(): void {
    this.looks += 1;
  }
}

function shown(answers: Partial<SummariesApi> = {}) {
  const said: string[] = [];
  let reads = 0;
  const conversation = new Looking(apiOf({}), instance());
  const operations = {
    compactions: () => Promise.resolve((reads += 1, [summary("s", "a", "b")])),
    compact: () => Promise.resolve(),
    ...answers,
  };
  const summaries = new Summaries(operations as unknown as SummariesApi, conversation, (text) => said.push(text));
  return {
    conversation,
    summaries,
    said,
    reads: () => reads,
    frame: (phase: SessionFrame["phase"], compacted?: SessionFrame["compacted"]) =>
      conversation.emit("session", { type: "cf_agent_session", phase, compacted }),
    end: () => (summaries.close(), conversation.close()),
  };
}

Deno.test("a page tells of a summary until a frame does: a page may be older than the frame", () => {
  const { conversation, frame, end } = shown();
  conversation.takePage(page({ compacting: "running" }));
  same(conversation.compacting, "running");
  frame("idle", { tokensBefore: 9 });
  conversation.takePage(page({ compacting: "running" })); // its row ends a moment after the word that it has ended
  same(conversation.compacting, "");
  conversation.emit("reconnected");
  conversation.takePage(page({ compacting: "waiting" }));
  same(conversation.compacting, "waiting");
  end();
});

Deno.test("a frame about one history does not count in another", () => {
  const { conversation, frame, end } = shown();
  conversation.takePage(page({ session_id: "one" }));
  frame("compacting"); // its end goes to those who show it then
  conversation.takePage(page({ session_id: "two", compacting: "" }));
  same(conversation.compacting, "");
  end();
});

Deno.test("summaries are read again when another history is shown, and only then", () => {
  const { conversation, reads, end } = shown();
  const show = (session_id: string | null, ...ids: string[]) =>
    conversation.takePage(page({ session_id, items: ids.map((id) => ({ id, role: "user" })) }));
  show(null, "a", "b");
  show(null, "a", "b", "c");
  same(reads(), 1);
  show(null, "x", "y");
  same(reads(), 2);
  show(null);
  show(null, "y");
  same(reads(), 3);
  show("other", "z");
  same(reads(), 4);
  end();
  show("third", "q");
  same(reads(), 4);
});

Deno.test("views of a conversation's summaries are drawn when they are there", async () => {
  const { summaries, end } = shown();
  same(summaries.compactions, []);
  const { currentVersion } = summaries;
  await pause(1);
  same([summaries.compactions.length, summaries.currentVersion > currentVersion], [1, true]);
  end();
});

Deno.test("what was asked for ends with a word: done, nothing to do, or failed", async () => {
  const done = shown();
  await done.summaries.ask("keep");
  same(done.conversation.compacting, "waiting");
  done.frame("compacting");
  same(done.conversation.compacting, "running");
  done.frame("idle", { tokensBefore: 9 });
  same([done.conversation.compacting, done.said], ["", ["Older messages were summarised."]]);
  done.frame("idle"); // another page changed a summary: nothing was requested here
  same(done.said.length, 1);

  const nothing = shown();
  await nothing.summaries.ask("");
  nothing.frame("idle"); // how full it is after the turn that comes first: what was asked for still waits
  same([nothing.said, nothing.conversation.compacting, nothing.conversation.looks], [[], "waiting", 1]);
  nothing.frame("compacting");
  nothing.frame("idle");
  same(nothing.said, ["There’s nothing to summarise yet."]);

  const broken = shown();
  await broken.summaries.ask("");
  broken.frame("compacting");
  broken.conversation.emit("session-failed", "Too slow.");
  broken.frame("idle");
  same([broken.summaries.error, broken.said], ["Too slow.", ["Couldn’t summarise older messages."]]);
  broken.summaries.dismiss();
  same(broken.summaries.error, "");
  const refused = shown({ compact: () => Promise.reject(new Error("Not now.")) });
  await refused.summaries.ask("");
  same([refused.summaries.error, refused.conversation.compacting], ["Not now.", ""]);
});

Deno.test("a changed summary says so, a refusal too", async () => {
  const { summaries, said, reads, end } = shown({
    rewordCompaction: () => Promise.resolve({ ...summary("s", "a", "b"), session_id: "s" }),
    undoCompaction: () => Promise.reject(new Error("Gone.")),
  });
  same([await summaries.reword("s", "shorter"), reads()], [true, 2]);
  same([await summaries.undo("s"), said], [false, ["Summary saved.", "Gone."]]);
  end();
});
