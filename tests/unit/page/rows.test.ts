/// <reference lib="deno.ns" />
// What stands in the list of a conversation, and what an answer of several turns took. Run by test_pure_modules.py.

import { type MessageRow, type Row, rowsOf, type Shown } from "../../../static/src/app/store/rows.ts";
import { turnOf } from "../../../static/src/app/store/turn_sum.ts";
import type { Part } from "../../../static/src/app/lib/parts.ts";
import type { Compaction, Message, OutboxEntry, TurnFacts } from "../../../static/src/app/store/types.ts";
import { message, same } from "./making.ts";

const text: Part = { type: "text", text: "Hello.", state: "done" };
const call: Part = { type: "tool-pay", toolCallId: "c", state: "output-available", input: {}, output: "paid" };
const turn = (more: Partial<TurnFacts> = {}): TurnFacts => ({
  id: "t",
  status: "completed",
  trigger: "submit-message",
  model: "m",
  input_tokens: 10,
  output_tokens: 5,
  duration_ms: 300,
  step_count: 1,
  cost: "0.01",
  finished_at: "2026-05-20T12:00:00Z",
  ...more,
});
const user = (id: string): Message => ({ ...message(id), role: "user" });
const answer = (id: string, ...parts: Part[]): Message => ({ ...message(id), role: "assistant", parts });
const entry = (id: string, state: OutboxEntry["state"], error = ""): OutboxEntry => ({
  limit: null,
  requestId: `r-${id}`,
  body: {},
  shown: user(id),
  state,
  error,
  tries: 0,
});
const list = (more: Partial<Shown>): Row[] =>
  rowsOf({
    messages: [],
    queued: [],
    entries: [],
    compactions: [],
    isElsewhere: false,
    running: null,
    answerOf: () => undefined,
    ...more,
  });
const toldOf = (rows: Row[]) =>
  rows.map((row) =>
    row.kind === "summary" ? `summary ${row.compaction.id}` : `${row.message.id} ${row.pending}`.trim()
  );
const messagesOf = (rows: Row[]) => rows.filter((row): row is MessageRow => row.kind === "message");

Deno.test("messages, what waits on the server, and what is on its way, in that order and each once", () => {
  const rows = list({
    messages: [user("a")],
    queued: [user("b"), { ...user("c"), isStopped: true }],
    entries: [entry("b", "accepted"), entry("d", "waiting"), entry("e", "refused", "Too long.")],
  });
  same(toldOf(rows), ["a", "b queued", "c", "d waiting", "e refused"]);
  same(messagesOf(rows).at(-1)?.error, "Too long.");
});

Deno.test("what stands behind a message that a limit keeps back waits for that message, not for the line", () => {
  const limit = { text: "2 within a minute.", endsAt: 0, passes: true } as OutboxEntry["limit"];
  const held = { ...entry("b", "waiting"), limit };
  same(toldOf(list({ entries: [entry("a", "waiting"), held, entry("c", "waiting"), entry("d", "refused", "No.")] })), [
    "a waiting",
    "b waiting",
    "c after",
    "d refused",
  ]);
});

Deno.test("a message waits behind the answer that runs, not behind its own", () => {
  const running = { turnId: "t1", message: answer("x") };
  const queued = [{ ...user("a"), turn: turn({ id: "t1" }) }, { ...user("b"), turn: turn({ id: "t2" }) }, user("c")];
  same(toldOf(list({ queued, running })), ["a queued", "b behind", "c behind"]);
  same(toldOf(list({ queued: [user("c")], running: { turnId: "t1", message: null } })), ["c queued"]);
});

Deno.test("a question stands above its answer before a page was read again", () => {
  const given = answer("x", text);
  const rows = list({ messages: [given], entries: [entry("a", "accepted")], answerOf: () => given });
  same(toldOf(rows), ["a accepted", "x"]);
});

Deno.test("who reads elsewhere sees nothing of what is on its way", () => {
  same(toldOf(list({ messages: [user("a")], entries: [entry("b", "sending")], isElsewhere: true })), ["a"]);
});

Deno.test("the line of a summary stands below what it covers", () => {
  const compactions = [{ id: "s", first_id: "a", last_id: "b", undone_at: null } as Compaction];
  same(toldOf(list({ messages: [user("a"), answer("b", text), user("c")], compactions })), [
    "a",
    "b",
    "summary s",
    "c",
  ]);
});

Deno.test("an answer that was taken up after a question is one answer", () => {
  const joined = (second: Partial<Message>, first = answer("x", text, call)) => {
    const rows = messagesOf(list({ messages: [user("a"), first, { ...answer("y", text), ...second }] }));
    return rows.slice(1).map(({ isFirst, isContinued, earlier }) => [isFirst, isContinued, earlier.length]);
  };
  const one = [[true, true, 0], [false, false, 1]];
  const two = [[true, false, 0], [true, false, 0]];
  same(joined({ turn: turn({ trigger: "continue" }) }), one);
  same(joined({ turn: turn({ trigger: "program" }) }), two);
  same(joined({ isLive: true }), one); // its turn is not known yet: the first one ended with a call
  same(joined({}, answer("x", call, text)), two);
  same(joined({ role: "user" }), two);
});

Deno.test("of three that are one answer the last knows the others", () => {
  const more = { turn: turn({ trigger: "continue" }) };
  const messages = [answer("x", call), { ...answer("y", call), ...more }, { ...answer("z", text), ...more }];
  same(messagesOf(list({ messages })).map((row) => row.earlier.map((item) => item.id)), [[], [], ["x", "y"]]);
});

Deno.test("one answer has one sum; how it ended is told by its last turn", () => {
  const first = { ...answer("x"), turn: turn({ status: "completed", model: "small", cost: "0.02" }) };
  const last = { ...answer("y"), turn: turn({ id: "u", status: "failed", model: "large", duration_ms: 700 }) };
  const sum = turnOf([first, last]);
  same(
    [sum?.id, sum?.status, sum?.model, sum?.input_tokens, sum?.output_tokens, sum?.duration_ms, sum?.step_count],
    ["u", "failed", "small, large", 20, 10, 1000, 2],
  );
  same(Number(sum?.cost).toFixed(2), "0.03");
  same(turnOf([first]), first.turn);
  same(turnOf([answer("x")]), null);
  same(turnOf([{ ...first, turn: turn({ cost: null }) }, { ...last, turn: turn({ cost: null }) }])?.cost, null);
});
