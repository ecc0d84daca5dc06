/// <reference lib="deno.ns" />
// What the line under a conversation says, and what lines of tool calls say. Run by test_pure_modules.py.

import { longRuns, runSummary } from "../../../static/src/app/store/runs.ts";
import { type StatusFields, statusOf } from "../../../static/src/app/store/status.ts";
import { TurnStream } from "../../../static/src/app/store/stream.ts";
import { titleFor } from "../../../static/src/app/store/titles.ts";
import type { Part, ToolPart, ToolState } from "../../../static/src/app/lib/parts.ts";
import type { Wait } from "../../../static/src/app/net/types.ts";
import type { StatusData } from "../../../static/src/app/net/frames.ts";
import { answering, instance, message, same } from "./making.ts";

const NOW = Date.parse("2026-05-20T12:00:00Z");

const state = (more: Partial<StatusFields> = {}): StatusFields => ({
  compacting: "",
  failed: null,
  instance: instance(),
  isLoaded: true,
  isRecovering: false,
  isStopping: false,
  loadError: null,
  messages: [],
  place: null,
  running: null,
  ...more,
});
const none = { entries: [] };
const textOf = (more: Partial<StatusFields>, outbox: Parameters<typeof statusOf>[1] = none) =>
  statusOf(state(more), outbox, null, NOW)?.text ?? null;

const streaming = (part: Part, more: Partial<TurnStream> = {}) => answering([part], { lastSignAt: NOW, ...more });
const text: Part = { type: "text", text: "", state: "streaming" };
const call = (id: string, state: ToolState = "output-available"): ToolPart => ({
  type: "tool-read",
  toolCallId: id,
  state,
});
const waiting = (more: Partial<TurnStream> = {}) => Object.assign(new TurnStream("r"), { lastSignAt: NOW, ...more });

Deno.test("the status line speaks only when there is something to say", () => {
  same(textOf({}), null);
  same(textOf({ isRecovering: true }), "Picking up after an interruption. Nothing is lost.");
  same(textOf({ isLoaded: false }), "Loading…");
  same(textOf({ running: waiting() }), "Waiting for the model");
  same(textOf({ running: waiting(), isStopping: true }), "Stopping…");
  same(textOf({ running: streaming(text) }), null);
  same(textOf({ running: streaming(call("c", "input-available"), { lastSignAt: 0 }) }), null);
  same(textOf({}, { entries: [{ state: "accepted" }] }), "Waiting for the model");
  const place = { sessionId: "s", leafId: "l", isOther: true, isForeign: false };
  same(textOf({ place, running: waiting() }), null);
});

Deno.test("silence is told with its length", () => {
  same(textOf({ running: streaming(text, { lastSignAt: NOW - 6_000 }) }), null);
  same(textOf({ running: streaming(text, { lastSignAt: NOW - 20_900 }) }), "Nothing new for 20 s");
  same(textOf({ running: streaming(text, { lastSignAt: NOW - 125_000 }) }), "Nothing new for 2 min 5 s");
  same(textOf({ running: waiting({ lastSignAt: NOW - 12_000 }) }), "Waiting for the model, 12 s");
});

Deno.test("what is at work is named, and how long it has been", () => {
  const activity = (kind: "model" | "tool", name: string, seconds: number) => ({
    kind,
    name,
    since: NOW - seconds * 1000,
  });
  const model = (seconds: number, name = "gpt-5") => activity("model", name, seconds);
  same(textOf({ running: waiting({ activity: model(12) }) }), "gpt-5 is thinking, 12 s");
  same(textOf({ running: waiting({ activity: model(1) }) }), "gpt-5 is thinking");
  same(textOf({ running: waiting({ activity: model(12, "") }) }), "Waiting for the model");
  const another = { ...model(12, "o3"), insteadOf: "gpt-5" };
  same(textOf({ running: waiting({ activity: another }) }), "o3, in place of gpt-5, is thinking, 12 s");
  same(textOf({ running: streaming(text, { activity: another }) }), "o3, in place of gpt-5, is thinking, 12 s");
  same(textOf({ running: streaming(text, { activity: another, hasSpoken: true }) }), null); // it goes on: that is seen
  same(
    textOf({ running: streaming({ type: "step-start" }, { activity: model(70) }) }),
    "gpt-5 is thinking, 1 min 10 s",
  );
  same(textOf({ running: streaming(text, { activity: model(12) }) }), null); // it shows by itself
  const search = activity("tool", "search_orders", 8);
  same(textOf({ running: streaming(call("c", "input-available"), { activity: search }) }), null); // its line shows that
  const two = [call("c", "input-available"), call("d")];
  same(textOf({ running: answering(two, { lastSignAt: NOW, activity: search }) }), null);
  same(textOf({ running: streaming(call("c"), { activity: search }) }), "Waiting for the model"); // it is over
});

Deno.test("a stream knows what is at work until another thing is, by this browser's clock", () => {
  const stream = new TurnStream("r");
  const take = (data: StatusData) =>
    stream.take({ type: "data-think-status", data, transient: true }, undefined, () => message("a"));
  take({ kind: "tool", name: "search", since: new Date(Date.now() + 3_600_000).toISOString() });
  same([stream.activity?.name, (stream.activity?.since ?? Infinity) <= Date.now()], ["search", true]);
  stream.take({ type: "finish-step" }, undefined, () => message("a"));
  same(stream.activity?.kind, "tool");
  take({ kind: "model", name: "gpt-5" });
  same([stream.activity?.kind, (stream.activity?.since ?? 0) > Date.now() - 1000], ["model", true]);
  same(stream.hasSpoken, false);
  stream.take({ type: "data-think-resumed", data: {} }, undefined, () => message("a"));
  same(stream.hasSpoken, false);
  stream.take({ type: "text-delta", id: "t", delta: "a" }, undefined, () => message("a"));
  same(stream.hasSpoken, true);
  take({ kind: "waiting", waits: [{ kind: "window" }] });
  same([stream.activity, stream.isPaused], [null, true]);
});

Deno.test("a parked turn says what it waits for and since when, until something comes", () => {
  const stream = new TurnStream("r");
  const since = new Date(2020, 0, 2, 14, 2).toISOString();
  const wait: Wait = { kind: "window", label: "the deployment window", since };
  const told = { type: "data-think-status", data: { kind: "waiting", waits: [wait] }, transient: true } as const;
  const noMessage = () => message("a");
  stream.take({ ...told, data: { kind: "waiting", waits: [wait] } }, 0, noMessage);
  const said = () => statusOf(state({ running: stream }), none)?.text ?? "";
  same(/^Waiting for the deployment window, since January 2\D+2:02\sPM$/.test(said()), true);
  stream.waits = [{ ...wait, label: "", since: undefined }];
  same(said(), "Waiting for window");
  stream.waits = [{ ...wait, since: "2021" }, wait];
  same(/^Waiting for the deployment window and 1 more, since January 2\D+2:02\sPM$/.test(said()), true);
  const today = new Date(NOW);
  stream.waits = [{ ...wait, since: new Date(today.setHours(9, 5)).toISOString() }];
  same(/since 9:05\sAM$/.test(statusOf(state({ running: stream }), none, null, NOW)?.text ?? ""), true);
  stream.take({ type: "start-step" }, 1, noMessage);
  same(said(), "Waiting for the model");
});

Deno.test("a turn whose model is asked again counts down, until something comes or its time has come", () => {
  const stream = new TurnStream("r");
  const retry = (delaySeconds: number, inSeconds: number, seq: number, code = "rate_limited") => {
    const retryAt = new Date(Date.now() + inSeconds * 1000).toISOString();
    const data: StatusData = { kind: "retry", code, attempt: 2, attempts: 3, delaySeconds, retryAt };
    stream.take({ type: "data-think-status", data, transient: true }, seq, () => message("a"));
  };
  const said = () => statusOf(state({ running: stream }), none)?.text;
  retry(18, 18, 0);
  same(said(), "The model is rate-limited. Trying again in 18 s (attempt 2 of 3).");
  retry(18, 3600, 1, "overloaded"); // a clock that is an hour behind
  same(said(), "The model is overloaded. Trying again in 18 s (attempt 2 of 3).");
  retry(18, -1, 2, "other");
  same(said(), "Waiting for the model");
  retry(18, 18, 3, "other");
  same(said(), "The model didn’t answer. Trying again in 18 s (attempt 2 of 3).");
  stream.take({ type: "start-step" }, 4, () => message("a"));
  same(said(), "Waiting for the model");
});

Deno.test("questions of the last answer are counted, and all can be answered at once", () => {
  const ask = call("c", "approval-requested");
  const withCalls = (parts: Part[], more: Partial<StatusFields> = {}) =>
    statusOf(state({ messages: [message("a", { role: "assistant", parts })], ...more }), none);
  same(withCalls([ask]), null); // its card says it
  const two = withCalls([ask, { ...ask, state: "output-available" }, ask]);
  same(two?.text, "2 calls are waiting for your decision.");
  same(two?.actions?.map((action) => action.label), ["Allow all 2", "Decline all"]);
  const chooses = { ...ask, approval: { id: "q", descriptor: { choices: [{ question: "Which?" }] } } } as ToolPart;
  const labels = (parts: Part[]) => withCalls(parts)?.actions?.map((action) => action.label);
  same(labels([ask, chooses, ask]), ["Allow all 2", "Decline all"]); // a choice is made by itself
  same(labels([ask, chooses]), ["Decline all"]);
  same(withCalls([ask], { instance: instance({ isReadOnly: true }) }), null);
  const answered = [message("a", { role: "assistant", parts: [ask] }), message("q", { parts: [] })];
  same(statusOf(state({ messages: answered }), none), null);
});

Deno.test("a failure gives its reason, what to do about it, and another try where one may write", () => {
  const failed = { error: "No.", code: "model_auth" };
  const said = statusOf(state({ failed }), none);
  same([said?.kind, said?.reason, said?.actions?.map(({ label }) => label)], [
    "error",
    "No.",
    ["Try again", "Try with another model"],
  ]);
  same(said?.text.includes("key"), true);
  const unknown = statusOf(state({ failed: { error: "No.", code: "" } }), none);
  same([unknown?.text, unknown?.actions?.length], ["The answer failed: No.", 1]);
  same(statusOf(state({ failed, instance: instance({ isReadOnly: true }) }), none)?.actions, []);
  same(textOf({ failed: { error: "" } }), "The answer failed.");
  const paused = statusOf(state({ failed: { error: "Cut.", code: "paused" } }), none);
  same(paused?.actions?.map(({ label }) => label), ["Resume"]);
});

Deno.test("a page that could not be read says why, and offers to read it again", () => {
  const said = statusOf(state({ isLoaded: false, loadError: new Error("Too slow.") }), none);
  same([said?.text, said?.detail, said?.actions?.map((action) => action.name)], [
    "This conversation couldn’t be loaded.",
    "Too slow.",
    ["reload"],
  ]);
  same(textOf({ loadError: new Error("Too slow.") }), null); // what is shown stays
});

Deno.test("a question about a call that code makes leads to the approvals, unless its card is there", () => {
  const running = waiting();
  running.waits = [{ kind: "approval", label: "Pay 5 €?" }];
  const instance = { ...state().instance, waitingCount: 1 };
  const said = statusOf(state({ running, instance }), none);
  same([said?.kind, said?.text, said?.actions?.map(({ name }) => name)], [
    "ask",
    "Waiting for your decision: Pay 5 €?",
    ["openApprovals"],
  ]);
  same(statusOf(state({ running }), none)?.actions, undefined); // something else that is called so
  running.waits = [{ kind: "approval", label: "Pay 5 €?", callId: "c" }];
  const messages = [message("a", { role: "assistant", parts: [call("c", "input-available")] })];
  same(statusOf(state({ running, instance, messages }), none), null); // its card says it
  running.waits = [{ kind: "approval", label: "" }];
  same(statusOf(state({ running, instance }), none)?.text, "Waiting for your decision.");
});

Deno.test("a summary that is made, waited for, or failed is said", () => {
  const running = waiting();
  same(textOf({ compacting: "running", running }), "Summarising older messages…");
  same(textOf({ compacting: "waiting", running }), "Waiting for the model");
  same(textOf({ compacting: "waiting" }), "About to summarise older messages…");
  const failed = statusOf(state(), none, { error: "Too slow.", outcome: null });
  same([failed?.text, failed?.actions?.map((action) => action.label)], [
    "Couldn’t summarise older messages: Too slow.",
    ["Try again", "Dismiss"],
  ]);
});

Deno.test("five calls in a row make a run; words between them end it, steps do not", () => {
  const step: Part = { type: "step-start" };
  const words: Part = { type: "text", text: "." };
  const five = ["a", "b", "c", "d", "e"].flatMap((id) => [step, call(id)]);
  same(longRuns(five).map((run) => [run.first, run.parts.length]), [[1, 5]]);
  same(longRuns([...five.slice(0, 6), words, ...five.slice(6)]), []);
  same(longRuns([call("z"), words, ...five]).map((run) => run.first), [3]);
});

Deno.test("a run says what became of its calls", () => {
  const done = [call("a"), call("b")];
  same(runSummary(done, false), { label: "2 tool calls", note: "Done", hasFailed: false });
  same(runSummary([...done, call("c", "output-error")], false).note, "1 failed");
  same(runSummary([...done, call("c", "input-available")], true).note, "Read is running");
  same(runSummary([...done, call("c", "input-available")], false).note, "1 without a result");
});

Deno.test("a first title is the first words, cut between them, or the name of a file", () => {
  const saying = (text: string, ...files: Part[]) => titleFor({ parts: [{ type: "text", text }, ...files] });
  same(saying("# Plan **this**  now\nand more"), "Plan this now");
  same(saying(`${"word ".repeat(20)}end`), `${"word ".repeat(11)}word…`);
  same([saying("", { type: "file", url: "/f", filename: "plan.pdf" }), titleFor(null)], ["plan.pdf", ""]);
});
