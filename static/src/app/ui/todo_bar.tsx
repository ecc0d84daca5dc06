// Above the message field: how far the agent's to-do list is, and the list itself when it is opened.

import { type MessageKey, t } from "../lib/i18n.ts";
import { isOpen, type Todo, type TodoStatus } from "../store/todos.ts";
import { Icon } from "./icon.tsx";

const WORDS: { readonly [status in TodoStatus]: MessageKey } = {
  pending: "todos.pending",
  in_progress: "todos.in-progress",
  completed: "todos.completed",
  cancelled: "todos.cancelled",
};

export function TodoBar({ todos }: { todos: readonly Todo[] }) {
  const counted = todos.filter(({ status }) => status !== "cancelled").length;
  const closed = todos.filter(({ status }) => status === "completed").length;
  const current = todos.find((todo) => todo.status === "in_progress") ?? todos.find(isOpen);
  return (
    <section id="todos" class="todo-bar" aria-label={t("todos.title")}>
      <details>
        <summary>
          <span class="todo-count">{t("todos.count", { closed, count: counted })}</span>
          {current && <span class="todo-current" dir="auto">{current.content}</span>}
          <Icon name="chevron" />
        </summary>
        <ol>
          {todos.map((todo, at) => (
            <li key={at} class={`is-${todo.status}`}>
              <span class="todo-mark">{todo.status === "completed" && <Icon name="check" />}</span>
              <span class="visually-hidden">{t(WORDS[todo.status])}</span>
              <span class="todo-text" dir="auto">{todo.content}</span>
              {todo.isUrgent && isOpen(todo) && <span class="todo-urgent">{t("todos.urgent")}</span>}
            </li>
          ))}
        </ol>
      </details>
    </section>
  );
}
