/// <reference lib="deno.ns" />
// One conversation as views follow it: revisions, the instance, frames. Run by test_pure_modules.py.

import { effect } from "@preact/signals-core";
import type { Chunk, ServerFrame } from "../../../static/src/app/net/frames.ts";
import { Conversation } from "../../../static/src/app/store/conversation.ts";
import { applyChunk } from "../../../static/src/app/store/fold.ts";
import { newInstance } from "../../../static/src/app/store/instances.ts";
import { TurnStream } from "../../../static/src/app/store/stream.ts";
import { Transcript } from "../../../static/src/app/store/transcript.ts";
import type { Message } from "../../../static/src/app/store/types.ts";
import { apiOf, idsOf, instance, item, message, page, pause, same, TestLine, until } from "./making.ts";

function live(items: object[] = [item("q")]): { conversation: Conversation; line: TestLine } {
  const answer = { items, session_id: "s", running: null };
  const api = apiOf({ messages: () => Promise.resolve(page(answer)) });
  const conversation = new Conversation(api, instance({ sessionId: "s" }), page(answer));
  const line = new TestLine();
  conversation.attach(line);
  return { conversation, line };
}

/** Counts how often a view of this would be drawn. */
function draws(read: () => unknown): { count: number; stop: () => void } {
  const counted = { count: 0, stop: () => {} };
  counted.stop = effect(() => {
    read();
    counted.count += 1;
  });
  return counted;
}

Deno.test("a stream takes each offset once and notices a gap", () => {
  const stream = new TurnStream("r");
  const open = (id: string): Message => message(id, { parts: [] });
  same(stream.take({ type: "start", messageId: "m" }, 0, open), "applied");
  same(stream.take({ type: "text-start", id: "t" }, 1, open), "applied");
  same(stream.take({ type: "text-delta", id: "t", delta: "a" }, 1, open), "old");
  same(stream.take({ type: "text-delta", id: "t", delta: "a" }, 3, open), "gap");
  same(stream.take({ type: "text-delta", id: "t", delta: "a" }, 2, open), "applied");
  same(stream.message?.parts.map((part) => part.type === "text" && part.text), ["a"]);
});

Deno.test("unknown chunks change nothing, whatever they are called", () => {
  const folded = { parts: [] };
  for (const type of ["unheard-of", "toString", "constructor", "__proto__"]) {
    same([applyChunk(folded, { type } as unknown as Chunk), folded.parts.length], [false, 0]);
  }
});

Deno.test("chunks tell the view of their message alone, once in a while, and the last is never lost", async () => {
  const { conversation, line } = live();
  line.chunk({ type: "start", messageId: "a" }, 0);
  line.chunk({ type: "text-start", id: "t" }, 1);
  await pause(60); // longer than chunks wait for the views to be drawn
  const answer = draws(() => conversation.revision("a"));
  const question = draws(() => conversation.revision("q"));
  const whole = draws(() => conversation.version);
  for (let seq = 2; seq < 102; seq += 1) line.chunk({ type: "text-delta", id: "t", delta: "x" }, seq);
  same([answer.count, question.count, whole.count], [1, 1, 1]);
  await until(() => answer.count > 1);
  same([answer.count, question.count, whole.count], [2, 1, 1]);
  const [text] = conversation.messages.at(-1)?.parts ?? [];
  same(text.type === "text" && text.text.length, 100);
  line.chunk({ type: "text-delta", id: "t", delta: "y" }, 102);
  conversation.close();
  same([answer.count, line.isClosed], [3, true]); // closing does not lose it either
  for (const view of [answer, question, whole]) view.stop();
});

Deno.test("a page tells the views of the messages that it changes, and of no others", () => {
  const conversation = new Transcript(apiOf({}), instance({ sessionId: "s" }));
  const show = (...items: object[]) => conversation.takePage(page({ items, session_id: "s" }));
  show(item("a"), item("b"));
  const [first, second] = conversation.messages;
  const [a, b] = [draws(() => conversation.revision("a")), draws(() => conversation.revision("b"))];
  show(item("a"), { ...item("b"), sibling_ids: ["b", "c"] });
  same([a.count, b.count], [1, 2]);
  same([conversation.messages[0] === first, conversation.messages[1] === second, second.siblings], [
    true,
    true,
    ["b", "c"],
  ]);
  a.stop();
  b.stop();
});

Deno.test("a stored message that changed elsewhere is told to its view", () => {
  const { conversation, line } = live([item("q"), item("a", { role: "assistant" })]);
  const view = draws(() => conversation.revision("a"));
  line.hear({ type: "cf_agent_message_updated", message: item("a", { parts: [] }) });
  line.hear({ type: "cf_agent_message_updated", message: item("unknown") });
  same([view.count, conversation.messages[1].parts], [2, []]);
  view.stop();
  conversation.close();
});

Deno.test("news of conversations are told, and those of the shown one are its own", () => {
  const { conversation, line } = live();
  const news: unknown[] = [];
  conversation.on("listed", (listed) => news.push(listed));
  line.hear({ type: "think_conversation", id: "other", title: "Tea", waitingCount: 2 });
  line.hear({ type: "think_conversation", id: "i", isRunning: true, hasFailed: false, waitingCount: 1 });
  same(news, [{ id: "other", title: "Tea", waitingCount: 2 }, {
    id: "i",
    isRunning: true,
    hasFailed: false,
    waitingCount: 1,
  }]);
  const { title, isRunning, waitingCount } = conversation.instance;
  same([title, isRunning, waitingCount], ["", true, 1]);
  conversation.close();
});

Deno.test("a model that was chosen elsewhere is the conversation's; the instance is another object then", () => {
  const { conversation, line } = live();
  const { instance: before, currentVersion } = conversation;
  const choice = {
    model: "openai/gpt-5",
    reasoning_effort: null,
    temperature: null,
    top_p: null,
    max_output_tokens: null,
  };
  line.hear({ type: "think_model_choice", instanceId: "other", model_choice: null, model: "small" });
  same([conversation.instance === before, conversation.currentVersion], [true, currentVersion]);
  line.hear({ type: "think_model_choice", instanceId: "i", model_choice: choice, model: "openai/gpt-5" });
  same([conversation.instance.modelChoice, conversation.instance.model], [choice, "openai/gpt-5"]);
  line.hear({ type: "think_model_choice", instanceId: "i", model_choice: null, model: null });
  same([conversation.instance.modelChoice, conversation.instance.model, before.model], [null, "", ""]);
  conversation.close();
});

Deno.test("the line stays with a conversation whose history is switched, and what ran there runs on there", () => {
  const { conversation, line } = live();
  line.chunk({ type: "start", messageId: "a" }, 0);
  same(Boolean(conversation.running), true);
  let switches = 0;
  conversation.on("switched", () => switches += 1);
  conversation.takePage(page({ session_id: "other", items: [item("x")] }));
  same([switches, conversation.running, idsOf(conversation), conversation.instance.sessionId], [
    1,
    null,
    ["x"],
    "other",
  ]);
  conversation.close();
  same(line.isClosed, true);
});

Deno.test("the first history of a new conversation leaves its turn running", () => {
  const api = apiOf({ messages: () => Promise.resolve(page({})) });
  const conversation = new Conversation(
    api,
    newInstance({ agent: "Assistant", name: "n", isTemporary: false, projectId: null }),
  );
  conversation.attach(new TestLine());
  same(conversation.isLoaded, true);
  conversation.accepted("r", "t");
  conversation.takePage(page({ session_id: "s", items: [] }));
  same([conversation.running?.turnId, conversation.sessionId], ["t", "s"]);
  conversation.close();
});

Deno.test("what is at work is told by chunks and pages, and ends with the turn", () => {
  const { conversation, line } = live();
  const version = draws(() => conversation.version);
  line.chunk({ type: "start", messageId: "a" }, 0);
  const { count } = version;
  line.chunk({ type: "data-think-status", data: { kind: "model", name: "gpt-5" }, transient: true }, 1);
  same([conversation.running?.activity?.name, version.count > count], ["gpt-5", true]);
  const stream = conversation.running;
  line.hear({ type: "cf_agent_use_chat_response", id: "r", body: "", done: true, outcome: "completed" });
  same([conversation.running, stream?.activity], [null, null]);
  version.stop();
  conversation.close();
  const transcript = new Transcript(apiOf({}), instance());
  const activity = { kind: "tool", name: "search", since: "2020-01-02T14:02:00Z" };
  transcript.takePage(page({ running: { request_id: "r", turn_id: "t", waits: [], activity } }));
  same(transcript.running?.activity, { kind: "tool", name: "search", since: Date.parse(activity.since) });
});

Deno.test("the end of an answer is told once, and only when it is known what the answer asks", async () => {
  const { conversation, line } = live();
  const told: unknown[] = [];
  conversation.on("spoken-end", ({ outcome }) => told.push([outcome, idsOf(conversation)]));
  line.chunk({ type: "start", messageId: "a" }, 0);
  const done: ServerFrame = { type: "cf_agent_use_chat_response", id: "r", body: "", done: true, outcome: "completed" };
  line.hear(done);
  same(told, [["completed", ["q", "a"]]]);
  line.hear(done); // replayed on another socket
  line.hear({ ...done, id: "unseen" });
  same(told.length, 1);
  await pause(0);
  same(told, [["completed", ["q", "a"]], ["completed", ["q"]]]); // the page that was read has nothing but the question
  conversation.close();
});

Deno.test("the list is told when changes are heard, for what changed before that was told to nobody", () => {
  const { conversation, line } = live();
  let joined = 0;
  conversation.on("joined", () => joined += 1);
  line.emit("open");
  same(joined, 0);
  line.hear({ type: "cf_agent_identity" });
  same(joined, 1);
  conversation.close();
});

Deno.test("a page that is loaded anew knows what its turn waits for", () => {
  const waits = [{ kind: "question", label: "Which colour?", since: "2020-01-02T14:02:00Z" }];
  const transcript = new Transcript(apiOf({}), instance());
  const answer = page({ items: [], queued: [], version: 1, running: { request_id: "r", turn_id: "t", waits } });
  transcript.takePage(answer);
  same(transcript.running?.waits, waits);
  transcript.running?.take({ type: "start-step" }, 0, () => message("a"));
  transcript.takePage(answer);
  same(transcript.running?.waits, []);
});

Deno.test("a page that was asked for before an answer ended does not take it out of sight", async () => {
  const pages: ((answer: object) => void)[] = [];
  const conversation = new Conversation(
    apiOf({ messages: () => new Promise((done) => pages.push(done)) }),
    instance(),
  );
  const line = new TestLine();
  conversation.attach(line);
  const early = conversation.refresh();
  line.hear({ type: "cf_agent_chat_messages", messages: [item("q"), item("a", { role: "assistant" })] });
  await pause(2);
  conversation.accepted("r", "t"); // something moved
  pages[0]({ items: [] });
  await early;
  same(idsOf(conversation), ["q", "a"]);
  const later = conversation.refresh();
  pages.at(-1)?.({ items: [item("b")] }); // another tab has chosen another version
  await later;
  same(idsOf(conversation), ["b"]);
  for (let times = 0; times < 5; times += 1) {
    const read = conversation.refresh();
    await pause(2);
    conversation.accepted("r", "t"); // one end follows another: sooner or later a page counts
    pages.at(-1)?.({ items: [item("c")] });
    await read;
  }
  same(idsOf(conversation), ["c"]);
  conversation.close();
});

Deno.test("a stream that is offered after its end is followed anew, over the same line", () => {
  const { conversation, line } = live();
  const end = { type: "cf_agent_use_chat_response", id: "r", body: "Interrupted.", done: true, error: true } as const;
  line.hear({ type: "cf_agent_stream_resuming", id: "r" });
  line.chunk({ type: "start", messageId: "a" }, 0);
  line.chunk({ type: "text-start", id: "t" }, 1);
  line.chunk({ type: "text-delta", id: "t", delta: "One" }, 2);
  line.hear(end);
  same([conversation.running, conversation.failed?.error], [null, "Interrupted."]);
  line.hear({ type: "cf_agent_stream_resuming", id: "r" });
  same([conversation.running?.requestId, conversation.failed], ["r", null]);
  const acks = line.sent.filter(({ type }) => type === "cf_agent_stream_resume_ack");
  same(acks.length, 2);
  line.chunk({ type: "start", messageId: "a" }, 0);
  line.chunk({ type: "text-start", id: "t" }, 1);
  line.chunk({ type: "text-delta", id: "t", delta: "One" }, 2);
  line.chunk({ type: "text-delta", id: "t", delta: ", two" }, 3);
  same(idsOf(conversation), ["q", "a"]);
  const [text] = conversation.messages.at(-1)?.parts ?? [];
  same(text.type === "text" && text.text, "One, two");
  conversation.close();
});

Deno.test("a page that says a turn runs whose end has come asks for its stream", async () => {
  const running = { id: "t", request_id: "r" };
  const api = apiOf({ messages: () => Promise.resolve(page({ items: [item("q")], session_id: "s", running })) });
  const conversation = new Conversation(api, instance({ sessionId: "s" }), null);
  const line = new TestLine();
  conversation.attach(line);
  line.hear({ type: "cf_agent_use_chat_response", id: "r", body: "", done: true, error: true });
  const asked = () => line.sent.filter(({ type }) => type === "cf_agent_stream_resume_request").length;
  const before = asked();
  await conversation.refresh(); // it may have been read before the end came
  await until(() => asked() > before);
  conversation.close();
});
