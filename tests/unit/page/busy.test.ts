/// <reference lib="deno.ns" />
// Whether the page is at rest: what is counted, and that nothing slips through in between.

import { ANSWER, begin, Due, pending, watchState } from "../../../static/src/app/lib/busy.ts";
import { pause, same } from "./making.ts";

function told(): string[] {
  const states: string[] = [];
  watchState((state) => states.push(state));
  return states;
}

Deno.test("the page is busy until the last of what has begun is over, whatever is said of an end twice", () => {
  const states = told();
  const [one, other] = [begin(), begin()];
  one();
  one();
  same(states, ["rest", "busy"]);
  other();
  same(states, ["rest", "busy", "rest"]);
});

Deno.test("an answer alone is no rest, and does not hide other work", () => {
  const states = told();
  const endAnswer = begin(ANSWER);
  const endWork = begin();
  endWork();
  endAnswer();
  same(states, ["rest", "answering", "busy", "answering", "rest"]);
});

Deno.test("what fails is over as well", async () => {
  const states = told();
  await pending(Promise.reject(new Error("no"))).catch(() => {});
  await pause(0);
  same(states, ["rest", "busy", "rest"]);
});

Deno.test("what follows from something that was due begins before that is over", async () => {
  const states = told();
  const due = new Due();
  let end = () => {};
  due.set(() => (end = begin()), 1);
  due.set(() => (end = begin()), 1); // moved: the first never comes
  await pause(20);
  same([due.isSet, states], [false, ["rest", "busy"]]);
  end();
  due.set(() => {}, 1_000);
  due.clear();
  same(states, ["rest", "busy", "rest", "busy", "rest"]);
});
