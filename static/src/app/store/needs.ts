// What needs the person: questions that wait in all conversations, and answers that ended unseen.

import type { App } from "./app.ts";
import type { Instance } from "./types.ts";

/** How many questions wait, and how many conversations have an answer that was not seen. */
export function needsOf({ approvals, list }: App): number {
  return approvals.count + unseen(list).length;
}

/** An answer that ended with a question is counted by its question. */
function unseen({ items, pinned, inside, currentId }: App["list"]): Instance[] {
  const isHidden = document.visibilityState === "hidden";
  const all = new Map([...pinned, ...inside, ...items].map((item) => [item.id, item]));
  return [...all.values()].filter(({ id, isUnread, isRunning, waitingCount }) =>
    isUnread && !isRunning && !waitingCount && (isHidden || id !== currentId)
  );
}

/** The page is looked at again: what ended in the shown conversation meanwhile is seen. */
export function markSeen({ api, conversation, list }: App): void {
  if (document.visibilityState === "hidden") return void list.changed();
  const { id, role } = conversation.instance;
  if (id && role === "owner") api.changeInstance(id, { seen: true }).catch(() => {});
  list.patch(id, { isUnread: false });
  list.changed();
}
