// Conversations that are dragged from the list to a project, or out of one. The menu does the same without a pointer.

import { pending } from "../lib/busy.ts";
import type { App } from "../store/app.ts";

const KIND = "application/x-conversations";

/** A row is dragged; with it all that are selected, if it is. */
export function dragConversations(event: DragEvent, ids: Iterable<string>): void {
  event.dataTransfer?.setData(KIND, JSON.stringify([...ids]));
}

/** What makes a place one where conversations can be dropped: in a project, or with null in none. */
export function dropTarget(app: App, projectId: string | null) {
  const isOurs = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes(KIND);
  const show = ({ currentTarget }: DragEvent, isOver: boolean) =>
    (currentTarget as HTMLElement).classList.toggle("is-target", isOver);
  return {
    onDragOver: (event: DragEvent) => {
      if (!isOurs(event)) return;
      event.preventDefault();
      show(event, true);
    },
    onDragLeave: (event: DragEvent) => {
      if (!(event.currentTarget as Node).contains(event.relatedTarget as Node | null)) show(event, false);
    },
    onDrop: async (event: DragEvent) => {
      if (!isOurs(event)) return;
      event.preventDefault();
      show(event, false);
      const ids: string[] = JSON.parse(event.dataTransfer!.getData(KIND));
      (await pending(import("../later/views.ts"))).moveConversations(app, ids, projectId);
    },
  };
}
