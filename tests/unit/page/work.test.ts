/// <reference lib="deno.ns" />
// What is at work, in words. Run by test_pure_modules.py.

import "../../../static/src/app/messages/later.ts";
import type { WorkItem } from "../../../static/src/app/net/work_api.ts";
import { nameOf, problemOf, standingOf, timesText } from "../../../static/src/app/store/work_facts.ts";
import { same } from "./making.ts";

const item = (given: Partial<WorkItem>): WorkItem => ({
  kind: "background",
  id: "fib_1",
  instance_id: "ins_1",
  title: "A talk",
  agent: "assistant",
  name: "crawl",
  status: "running",
  since: "2026-11-28T03:00:00Z",
  ended_at: null,
  next_at: null,
  last_run: null,
  error: "",
  verbs: ["cancel"],
  ...given,
});

Deno.test("each kind says how it stands", () => {
  same(standingOf(item({})), { text: "Running", mood: "is-busy" });
  same(standingOf(item({ verbs: [] })).text, "Stopping…");
  same(standingOf(item({ kind: "turn", name: "", status: "running" })).text, "Being written");
  same(standingOf(item({ kind: "schedule", status: "paused", verbs: ["resume", "run"] })).text, "Paused");
  same(standingOf(item({ status: "failed", ended_at: "2026-11-28T03:01:00Z", verbs: ["retry"] })).mood, "is-bad");
  same([nameOf(item({ kind: "turn", name: "" })), nameOf(item({}))], ["Answer", "crawl"]);
});

Deno.test("a schedule says when it runs next and why the last run failed", () => {
  const run = {
    id: "1",
    due_at: "2026-11-28T02:00:00Z",
    started_at: "2026-11-28T02:00:00Z",
    finished_at: "2026-11-28T02:00:01Z",
    status: "failed" as const,
    test: false,
    error: "No room.",
    turn_id: null,
  };
  const schedule = item({ kind: "schedule", status: "active", next_at: "2026-11-28T05:00:00Z", last_run: run });
  const shown = timesText(schedule, Date.parse("2026-11-28T03:00:00Z"));
  same([shown.startsWith("next run in 2 hours"), / last run .*: failed$/.test(shown)], [true, true]);
  same([problemOf(schedule), problemOf({ ...schedule, last_run: { ...run, status: "completed" } })], ["No room.", ""]);
});
