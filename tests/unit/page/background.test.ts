/// <reference lib="deno.ns" />
// Background work in words, its groups, and the tree of agents. Run by test_pure_modules.py.

import "../../../static/src/app/messages/later.ts";
import type { Fiber, TreeRun } from "../../../static/src/app/net/background_api.ts";
import {
  attemptsText,
  countsText,
  dueText,
  entryText,
  fiberStanding,
  groupsOf,
  nameOfFiber,
  reasonText,
  treeOf,
  treeStanding,
  waitText,
  whyOf,
} from "../../../static/src/app/store/background_facts.ts";

function same(found: unknown, wanted: unknown): void {
  const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`${one} is not ${other}`);
}

const fiber = (change: Partial<Fiber>): Fiber =>
  ({
    id: "f",
    method: "report",
    status: "running",
    reason: "",
    error: null,
    attempts: 1,
    retry_count: 0,
    max_retries: 0,
    can_resolve: false,
    is_stopping: false,
    not_before: null,
    ...change,
  }) as Fiber;

const run = (id: string, parent: string, change: Partial<TreeRun> = {}): TreeRun =>
  ({
    id,
    parent_id: parent,
    child_id: `child of ${id}`,
    status: "running",
    question_count: 0,
    turn_count: 1,
    cost: "0",
    is_detached: false,
    created_at: "2026-01-01T00:00:00Z",
    finished_at: null,
    outcome: null,
    ...change,
  }) as TreeRun;

Deno.test("work whose code is missing is told apart from work that has only not begun", () => {
  const missing = fiber({ status: "pending", reason: "method_missing" });
  same(fiberStanding(missing), { text: "Waiting for its code", mood: "is-asking" });
  if (!reasonText(missing).includes("update")) throw new Error(reasonText(missing));
  same(fiberStanding(fiber({ status: "pending" })).text, "Waiting to begin");
  same(fiberStanding(fiber({ is_stopping: true })).text, "Stopping…");
});

Deno.test("a reason is said in words, one of code as it is, and the code of an error not twice", () => {
  same(reasonText(fiber({ reason: "worker_lost" })), "Its worker was lost while it ran.");
  same(reasonText(fiber({ status: "cancelled", reason: "no_longer_wanted" })), "Reason: no longer wanted");
  same(reasonText(fiber({ status: "failed", reason: "oops", error: { code: "oops", message: "No." } })), "");
  same(reasonText(fiber({})), "");
});

Deno.test("attempts, waits and what is due are said", () => {
  same(attemptsText(fiber({ attempts: 2, retry_count: 1, max_retries: 3 })), "2 attempts · 1 of 3 retries used");
  same(waitText({ kind: "some_person", label: "", since: null }), "some person");
  same(dueText(fiber({ not_before: "2026-01-01T00:02:00Z" }), Date.parse("2026-01-01")), "Next attempt in 2 minutes.");
  same(dueText(fiber({ not_before: "2026-01-01T00:02:00Z" }), Date.parse("2026-01-02")), "");
  same(nameOfFiber(fiber({ method: "keep_alive" })), "Staying awake");
  same(entryText({ kind: "step", at: "", step: "fetch", attempt: 2, count: 1 }), "Step “fetch” done (attempt 2)");
  same(entryText({ kind: "lost", at: "", step: "", attempt: null, count: 3 }), "Its worker was lost 3 times in a row");
});

Deno.test("what asks for a decision comes before what is under way and what has ended", () => {
  const rows = [
    fiber({ id: "done", status: "completed" }),
    fiber({ id: "parked", status: "parked" }),
    fiber({ id: "lost", status: "interrupted", can_resolve: true }),
    fiber({ id: "failed", status: "failed" }),
  ];
  const { attention, underWay, ended } = groupsOf(rows);
  same([attention, underWay, ended].map((group) => group.map(({ id }) => id)), [["lost"], ["parked"], [
    "done",
    "failed",
  ]]);
});

Deno.test("runs stand below the run whose conversation started them, each once", () => {
  const runs = [run("b", "top"), run("a", "top"), run("deep", "child of a"), run("stray", "elsewhere")];
  const twice = run("again", "top", { child_id: "child of a" });
  const ids = (nodes: ReturnType<typeof treeOf>): unknown[] => nodes.map((node) => [node.run.id, ids(node.below)]);
  same(ids(treeOf(runs, "top")), [["b", []], ["a", [["deep", []]]]]);
  same(ids(treeOf([...runs, twice], "top")), [["b", []], ["a", [["deep", []]]], ["again", []]]);
  same(ids(treeOf([run("loop", "top", { child_id: "top" })], "top")), [["loop", []]]);
});

Deno.test("a run says what it asks, what it took and why it failed", () => {
  same(treeStanding(run("a", "top", { question_count: 1 })).text, "Asks something");
  same(treeStanding(run("a", "top", { status: "error", question_count: 1 })).text, "Failed");
  const done = run("a", "top", { turn_count: 2, question_count: 1, cost: "0.02", finished_at: "2026-01-01T00:00:12Z" });
  same(countsText(done), "2 turns · 1 question · $0.02 · 12 s");
  same(whyOf(run("a", "top", { outcome: { status: "error", error: "It broke." } })), "It broke.");
  same(whyOf(run("a", "top")), "");
});
