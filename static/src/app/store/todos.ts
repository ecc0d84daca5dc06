// The agent's to-do list: what the last call of its tool on the shown path has written. So it follows an undo, a redo and a
// switch to another version by itself. Pure.

import { isTool, toolName } from "./fold.ts";
import { isRecord } from "./tool_details.ts";
import type { Message, ToolPart } from "./types.ts";

export type TodoStatus = "pending" | "in_progress" | "completed" | "cancelled";

export interface Todo {
  content: string;
  status: TodoStatus;
  isUrgent: boolean;
}

const STATUSES: readonly unknown[] = ["pending", "in_progress", "completed", "cancelled"];

/** The list as the messages have it; null where none of them has written one. */
export function todosOf(messages: readonly Message[]): Todo[] | null {
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const written = messages[at].parts.findLast((part) =>
      isTool(part) && toolName(part) === "todo_write" && part.state === "output-available"
    ) as ToolPart | undefined;
    if (written) return listIn(written.output);
  }
  return null;
}

function listIn(output: unknown): Todo[] {
  const found = isRecord(output) && Array.isArray(output.todos) ? output.todos : [];
  return found
    .filter((item) => isRecord(item) && typeof item.content === "string" && STATUSES.includes(item.status))
    .map(({ content, status, priority }) => ({ content, status, isUrgent: priority === "high" }));
}

export const isOpen = ({ status }: Todo): boolean => status === "pending" || status === "in_progress";
