/// <reference lib="deno.ns" />
// The injection guard of a conversation as the page keeps it. Run by test_pure_modules.py.

import type { Api } from "../../../static/src/app/net/api.ts";
import { Guards, type GuardState, type GuardText, isPath, placesOf } from "../../../static/src/app/store/guards.ts";
import { sourcesIn } from "../../../static/src/app/ui/approval_card.tsx";
import { same } from "./making.ts";

const text = (number: number, source: string): GuardText => ({
  number,
  origin: "web",
  source,
  message_id: "m",
  call_id: "c",
  seen_at: "2026-01-01T00:00:00Z",
});

const state = (count: number, decision: GuardState["decision"] = ""): GuardState => ({
  is_guarded: decision !== "conversation",
  decision,
  decided_by: "",
  decided_at: null,
  count,
  texts: [],
  relaxed: null,
});

const apiOf = (request: (...args: unknown[]) => Promise<unknown>) => ({ request }) as unknown as Api;

Deno.test("a source is named once, the newest first", () => {
  const places = placesOf([text(3, "a"), text(2, "b"), text(1, "a")]);
  same(places.map(({ number }) => number), [3, 2]);
});

Deno.test("paths of the workspace are told from addresses and names", () => {
  same(
    ["/in/a.txt", "//evil.example/x", "https://a.example/b", "letter.txt", "/"].map((source) => isPath({ source })),
    [
      true,
      false,
      false,
      false,
      false,
    ],
  );
});

Deno.test("a decision covers the texts that were shown", async () => {
  const asked: unknown[] = [];
  const api = apiOf((...args) => {
    asked.push(args);
    return Promise.resolve(args[0] === "GET" ? state(2) : state(3, "conversation"));
  });
  const guards = new Guards(api, "a/b");
  await guards.load();
  await guards.decide("conversation");
  same(asked, [
    ["GET", "/instances/a%2Fb/guard"],
    ["POST", "/instances/a%2Fb/guard", { decision: "conversation", seen: 2 }],
  ]);
  same([guards.state?.decision, guards.isBusy], ["conversation", false]);
});

Deno.test("a decision that fails leaves what is known, and says why", async () => {
  const api = apiOf((method) => method === "GET" ? Promise.resolve(state(1)) : Promise.reject(new Error("offline")));
  const guards = new Guards(api, "i");
  await guards.load();
  await guards.decide("ask");
  same([guards.state?.count, guards.error, guards.isBusy], [1, "offline", false]);
});

Deno.test("an answer that comes late does not replace a newer one", async () => {
  let arrive = (_: GuardState) => {};
  const api = apiOf((method) => method === "GET" ? new Promise((go) => arrive = go) : Promise.resolve(state(2, "ask")));
  const guards = new Guards(api, "i");
  const loading = guards.load();
  await guards.decide("ask");
  arrive(state(1));
  await loading;
  same(guards.state?.decision, "ask");
});

Deno.test("the sources of a question are texts; whatever is none is left out", () => {
  same(sourcesIn([{ kind: "web", source: "a" }, { kind: "file", source: "" }, 7, { kind: 1 }]), ["a", "file"]);
  same(sourcesIn("a"), []);
});
