/// <reference lib="deno.ns" />
// Which open calls belong to a call that runs code, and when they are read. Run by test_pure_modules.py.

import type { Api } from "../../../static/src/app/net/api.ts";
import type { Conversation } from "../../../static/src/app/store/conversation.ts";
import { OpenCalls } from "../../../static/src/app/store/open_calls.ts";
import { askedWithin } from "../../../static/src/app/store/runs.ts";
import { same } from "./making.ts";

const asked = (call_id: string, needs = "approval") => ({ call_id, needs });

Deno.test("calls within another one are those with its id before theirs, as far as a person is asked", async () => {
  const all = [asked("one"), asked("one:10"), asked("one:2", "result"), asked("one:3"), asked("one-more:1")];
  const answers = [all, all, []];
  let reads = 0;
  const api = { openCalls: () => Promise.resolve(answers[reads++]) } as unknown as Api;
  const calls = new OpenCalls(api, { instance: { id: "ins_1" } } as Conversation);
  calls.again();
  calls.again(); // what is under way counts
  calls.want("one");
  await new Promise((resolve) => setTimeout(resolve));
  same([calls.within("one").map((call) => call.call_id), reads], [["one:3", "one:10"], 1]);
  calls.again();
  await Promise.resolve(); // it is asked for
  calls.again(); // something has changed since
  await new Promise((resolve) => setTimeout(resolve));
  same([calls.within("one"), reads], [[], 3]);
});

Deno.test("a turn asks within the call that its wait names", () => {
  const waits = [{ kind: "window", callId: "a" }, { kind: "approval", callId: "b", label: "Pay?" }];
  same(askedWithin({ waits }, "b")?.label, "Pay?");
  same([askedWithin({ waits }, "a"), askedWithin(null, "b")], [undefined, undefined]);
});
