/// <reference lib="deno.ns" />
// The to-do list as the messages have it. Run by test_pure_modules.py.

import { isOpen, todosOf } from "../../../static/src/app/store/todos.ts";
import type { ToolPart } from "../../../static/src/app/lib/parts.ts";
import { message, same } from "./making.ts";

const written = (todos: unknown, more: Partial<ToolPart> = {}): ToolPart => ({
  type: "tool-todo_write",
  toolCallId: "c1",
  state: "output-available",
  output: { todos },
  ...more,
});
const one = (content: string, status = "pending") => ({ content, status, priority: "high" });

Deno.test("the last list that was written counts, and only what is one", () => {
  same(todosOf([message("a")]), null);
  const first = message("b", { role: "assistant", parts: [written([one("old")]), written([one("new")])] });
  same(todosOf([message("a"), first, message("c")]), [{ content: "new", status: "pending", isUrgent: true }]);
  const refused = written([], { state: "output-error", errorText: "no" });
  same(todosOf([first, message("d", { parts: [refused] })])?.length, 1);
  same(todosOf([first, message("d", { parts: [written([])] })]), []);
  same(todosOf([message("d", { parts: [written([one("a", "half"), 7, { status: "pending" }])] })]), []);
  same(todosOf([message("d", { parts: [written("none")] })]), []);
});

Deno.test("what is done or cancelled is not open", () => {
  const statuses = ["pending", "in_progress", "completed", "cancelled"].map((status) => one("a", status));
  same(todosOf([message("a", { parts: [written(statuses)] })])?.map(isOpen), [true, true, false, false]);
});
