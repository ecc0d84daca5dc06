// Checks of the page's modules that touch no document. Run by test_pure_modules.py with the Deno of the wheel.

import { Freshness } from "../../../static/src/js/freshness.js";
import { applyChunk } from "../../../static/src/js/fold.js";
import { dayGroup, duration, fileSize, timeLabel, turnFacts } from "../../../static/src/app/lib/format.ts";
import { newId } from "../../../static/src/js/ids.js";
import { isLongText } from "../../../static/src/app/lib/long_text.ts";
import { withoutMarkup } from "../../../static/src/app/lib/markup.ts";
import { fromItem, fromPage, mergeNewest, mergeTranscript } from "../../../static/src/js/path.js";
import { longRuns, runSummary } from "../../../static/src/js/runs.js";
import { statusOf } from "../../../static/src/js/status_line.js";
import { TurnStream } from "../../../static/src/js/stream.js";
import { Transcript } from "../../../static/src/js/transcript.js";

function same(found, wanted) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${a} is not ${b}`);
}

const item = (id, parent = null, more = {}) => ({
  id,
  role: "user",
  parts: [{ type: "text", text: id }],
  parent_id: parent,
  ...more,
});
const listed = (...ids) => ({
  messages: ids.map((id) => fromItem(item(id))),
  hasMore: true,
  running: null,
  queued: [],
});
const idsOf = (conversation) => conversation.messages.map((message) => message.id);

Deno.test("durations, sizes and days as people read them", () => {
  same([0, 850, 3200, 48_000, 125_000].map(duration), ["1 ms", "850 ms", "3.2 s", "48 s", "2 min 5 s"]);
  same([999, 12_345, 3_400_000].map(fileSize), ["999 B", "12 kB", "3.4 MB"]);
  const now = new Date(2026, 4, 20, 12);
  const ago = (days) => dayGroup(new Date(2026, 4, 20 - days, 23), now);
  same([0, 1, 7, 30].map(ago), ["Today", "Yesterday", "Previous 7 days", "Previous 30 days"]);
});

Deno.test("what a turn took: what is not known is not said", () => {
  const bare = { status: "completed", model: "m", input_tokens: 0, output_tokens: 0, duration_ms: null };
  same(turnFacts(bare).short, "m");
  const rich = {
    status: "aborted",
    model: "m",
    input_tokens: 30,
    output_tokens: 12,
    cached_tokens: 20,
    reasoning_tokens: 5,
    step_count: 3,
    duration_ms: 2100,
  };
  same(turnFacts(rich).short, "stopped · m · 42 tokens · 2.1 s");
  same(turnFacts(rich).long, "30 tokens read, 20 of them from the cache; 12 written, 5 of them thought; 3 steps");
});

Deno.test("long texts: by characters or by lines", () => {
  same([
    isLongText("x".repeat(4000)),
    isLongText("x".repeat(4001)),
    isLongText("\n".repeat(39)),
    isLongText("\n".repeat(40)),
  ], [false, true, false, true]);
});

Deno.test("ids are long, prefixed and differ", () => {
  same(/^req_[0-9a-z]{20}$/.test(newId("req")), true);
  same(new Set(Array.from({ length: 100 }, () => newId("x"))).size, 100);
});

const call = (id, state = "output-available") => ({ type: "tool-read", toolCallId: id, state });

Deno.test("five calls in a row make a run; words between them end it, steps do not", () => {
  const step = { type: "step-start" };
  const words = { type: "text", text: "." };
  const five = ["a", "b", "c", "d", "e"].flatMap((id) => [step, call(id)]);
  same(longRuns(five).map((run) => [run.first, run.parts.length]), [[1, 5]]);
  same(longRuns([...five.slice(0, 6), words, ...five.slice(6)]), []);
  same(longRuns([call("z"), words, ...five]).map((run) => run.first), [3]);
});

Deno.test("a run says what became of its calls", () => {
  const done = [call("a"), call("b")];
  same(runSummary(done, false), { label: "2 tool calls", note: "Done", hasFailed: false });
  same(runSummary([...done, call("c", "output-error")], false).note, "1 failed");
  same(runSummary([...done, call("c", "input-available")], true).note, "read runs");
  same(runSummary([...done, call("c", "input-available")], false).note, "1 without a result");
});

Deno.test("the newest page is laid over the list: older ones that lead to it stay, another branch replaces", () => {
  const conversation = listed("a", "b", "c");
  mergeNewest(conversation, fromPage({ items: [item("b"), item("c"), item("d")], has_more: true }), null);
  same(idsOf(conversation), ["a", "b", "c", "d"]);
  mergeNewest(conversation, fromPage({ items: [item("x"), item("y")], has_more: false }), null);
  same([idsOf(conversation), conversation.hasMore], [["x", "y"], false]);
});

Deno.test("a message being streamed keeps its own, newer parts", () => {
  const conversation = listed("q");
  const live = {
    ...fromItem(item("a", "q", { role: "assistant" })),
    parts: [{ type: "text", text: "newer" }],
    isLive: true,
  };
  conversation.messages.push(live);
  mergeNewest(conversation, fromPage({ items: [item("q"), item("a", "q")] }), live);
  same([conversation.messages[1] === live, live.isLive, live.parts[0].text], [true, true, "newer"]);
});

Deno.test("a transcript frame keeps older pages and lists queued messages apart", () => {
  const conversation = listed("a", "b");
  mergeTranscript(conversation, [item("b"), item("c"), item("q", null, { metadata: { queued: true } })]);
  same([idsOf(conversation), conversation.queued.map((message) => message.id)], [["a", "b", "c"], ["q"]]);
  same(conversation.queued[0].isStopped, false);
  mergeTranscript(conversation, [item("c"), item("q", null, { metadata: { queued: true, stopped: true } })]);
  same(conversation.queued[0].isStopped, true);
  const ended = { finished_at: "2026-05-20T12:00:00Z" };
  const page = fromPage({
    queued: [
      item("q", null, { queued: true, turn: ended }),
      item("r", null, { queued: true, turn: { finished_at: null } }),
    ],
  });
  same(page.queued.map((message) => message.isStopped), [true, false]);
});

Deno.test("a question that waited until its answer began is put above it", () => {
  const answer = { ...item("a1"), parts: [], isLive: true };
  const begun = { ...listed(), hasMore: false, messages: [answer], running: { message: answer } };
  mergeTranscript(begun, [item("q1"), item("a1")]);
  same(idsOf(begun), ["q1", "a1"]);
  const long = { ...listed("b", "c"), hasMore: true };
  mergeTranscript(long, [item("a"), item("b"), item("c"), item("d")]);
  same(idsOf(long), ["b", "c", "d"]); // what lies above comes by pages
});

Deno.test("of a page and a transcript the one with less changes is older; what has no number may hold all", () => {
  const fresh = new Freshness();
  fresh.note(3);
  fresh.note(2);
  same([fresh.version, fresh.isOlder(2), fresh.isOlder(3), fresh.isOlder()], [3, true, false, false]);
  const now = performance.now() + 1;
  same([fresh.isTooOld(3, now), fresh.isTooOld(2, now)], [false, true]);
  same([1, 2, 3].map(() => fresh.isTooOld(2, now)), [true, true, false]); // not for ever
});

Deno.test("a stream takes each offset once and notices a gap", () => {
  const stream = new TurnStream("r");
  const open = (id) => ({ id, parts: [] });
  same(stream.take({ type: "start", messageId: "m" }, 0, open), "applied");
  same(stream.take({ type: "text-start", id: "t" }, 1, open), "applied");
  same(stream.take({ type: "text-delta", id: "t", delta: "a" }, 1, open), "old");
  same(stream.take({ type: "text-delta", id: "t", delta: "a" }, 3, open), "gap");
  same(stream.take({ type: "text-delta", id: "t", delta: "a" }, 2, open), "applied");
  same(stream.message.parts[0].text, "a");
});

Deno.test("unknown chunks change nothing", () => {
  const message = { parts: [] };
  same([applyChunk(message, { type: "unheard-of" }), message.parts.length], [false, 0]);
});

const state = (more) => ({ instance: { id: "i" }, messages: [], isLoaded: true, running: null, failed: null, ...more });
const none = { entries: [] };
const streaming = (part, heardAt = Date.now()) => ({ phase: "answering", message: { parts: [part] }, heardAt });

Deno.test("the status line speaks only when there is something to say", () => {
  const textOf = (more, outbox = none) => statusOf(state(more), outbox)?.text ?? null;
  same(textOf({}), null);
  same(textOf({ isRecovering: true }), "Picking up after an interruption. Nothing is lost.");
  same(textOf({ isLoaded: false }), "Loading");
  same(textOf({ running: { phase: "waiting" } }), "Waiting for the model");
  same(textOf({ running: streaming({ type: "text", state: "streaming" }) }), null);
  same(
    textOf({ running: streaming({ type: "text", state: "streaming" }, 0) }),
    "Nothing new for a while. Still waiting.",
  );
  same(textOf({ running: streaming({ type: "tool-x", state: "input-available" }, 0) }), null);
  same(textOf({}, { entries: [{ state: "accepted" }] }), "Waiting for the model");
});

Deno.test("a parked turn says what it waits for and since when, until something comes", () => {
  const stream = new TurnStream("r");
  const since = new Date(2020, 0, 2, 14, 2).toISOString();
  const wait = { kind: "window", label: "the deployment window", since };
  stream.take({ type: "data-think-status", data: { kind: "waiting", waits: [wait] }, transient: true }, 0, () => null);
  const textOf = () => statusOf(state({ running: stream }), none).text;
  same(textOf(), `Waiting for the deployment window, since ${timeLabel(since)}`);
  stream.waits = [{ ...wait, label: "", since: null }];
  same(textOf(), "Waiting for window");
  stream.waits = [{ ...wait, since: "2021" }, wait];
  same(textOf(), `Waiting for the deployment window and 1 more, since ${timeLabel(since)}`);
  stream.take({ type: "start-step" }, 1, () => null);
  same(textOf(), "Waiting for the model");
});

Deno.test("a turn whose model is asked again counts down, until something comes or its time has come", () => {
  const stream = new TurnStream("r");
  const retry = (delaySeconds, retryAt, code = "rate_limited") => ({
    type: "data-think-status",
    transient: true,
    data: {
      kind: "retry",
      code,
      attempt: 2,
      attempts: 3,
      delaySeconds,
      retryAt: new Date(Date.now() + retryAt * 1000).toISOString(),
    },
  });
  const textOf = () => statusOf(state({ running: stream }), none).text;
  stream.take(retry(18, 18), 0, () => null);
  same(textOf(), "Rate limited, retrying in 18 s, attempt 2 of 3");
  stream.take(retry(18, 3600, "overloaded"), 1, () => null); // a clock that is an hour behind
  same(textOf(), "The model is overloaded, retrying in 18 s, attempt 2 of 3");
  stream.take(retry(18, -1, "other"), 2, () => null);
  same(textOf(), "Waiting for the model");
  stream.take(retry(18, 18, "other"), 3, () => null);
  same(textOf(), "The model did not answer, retrying in 18 s, attempt 2 of 3");
  stream.take({ type: "start-step" }, 4, () => null);
  same(textOf(), "Waiting for the model");
});

Deno.test("a page that is loaded anew knows what its turn waits for", () => {
  const waits = [{ kind: "question", label: "Which colour?", since: "2020-01-02T14:02:00Z" }];
  const running = { request_id: "r", turn_id: "t", waits };
  const conversation = new Transcript({}, { id: "i" });
  const page = { items: [], queued: [], session_id: null, version: 1, running };
  conversation.takePage(page);
  same(conversation.running.waits, waits);
  conversation.running.take({ type: "start-step" }, 0, () => null);
  conversation.takePage(page);
  same(conversation.running.waits, []);
});

Deno.test("questions of the last answer are counted, and all can be answered at once", () => {
  const ask = { type: "tool-pay", state: "approval-requested" };
  const withCalls = (parts, more) => statusOf(state({ messages: [{ role: "assistant", parts }], ...more }), none);
  same(withCalls([ask]).text, "Waiting for your decision.");
  same(withCalls([ask]).actions, []);
  same(withCalls([ask, { ...ask, state: "output-available" }, ask]).actions.map((action) => action.label), [
    "Allow all 2",
    "Decline all",
  ]);
  same(withCalls([ask], { instance: { id: "i", isReadOnly: true } }), null);
  same(statusOf(state({ messages: [{ role: "assistant", parts: [ask] }, { role: "user", parts: [] }] }), none), null);
});

Deno.test("a failure gives its reason, what to do about it, and another try where one may write", () => {
  const failed = { error: "No.", code: "model_auth" };
  const said = statusOf(state({ failed }), none);
  same([said.kind, said.text, said.actions.length], ["error", "The answer failed: No.", 1]);
  same(said.detail.includes("key"), true);
  same(statusOf(state({ failed, instance: { id: "i", isReadOnly: true } }), none).actions, []);
});

Deno.test("titles hold no marks of Markdown", () => {
  same(
    withoutMarkup("# Plan **this** with `code` and [a link](https://example.com/a_b)"),
    "Plan this with code and a link",
  );
  same(withoutMarkup("```js\nlet x;\n```"), "let x;\n");
  same(withoutMarkup("***both*** ~~gone~~ _slanted_\n- item"), "both gone slanted\nitem");
  same(withoutMarkup("call `f(**x)`, **bold with `code`**"), "call f(**x), bold with code");
  for (const text of ["2 * 3 * 4 and a_b_c", "f(*args, **options): __init__", "**never closed", "C# is -1"]) {
    same(withoutMarkup(text), text);
  }
});
