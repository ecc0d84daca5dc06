// Keys that work everywhere on the page. The list that "?" shows is in dialogs/shortcuts.tsx.

import { pending } from "../lib/busy.ts";
import type { App } from "../store/app.ts";

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

const hasOverlay = (): boolean => document.querySelector("dialog[open], [popover]:popover-open") !== null;

/** Listen to the keys of the page; returns how to stop. */
export function bindKeys(app: App): () => void {
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.defaultPrevented || hasOverlay()) return;
    const isCommand = (event.ctrlKey || event.metaKey) && !event.altKey;
    const action = isCommand ? commandOf(app, event) : plainOf(app, event);
    if (!action) return;
    event.preventDefault();
    action();
  };
  document.addEventListener("keydown", onKeyDown);
  return () => document.removeEventListener("keydown", onKeyDown);
}

function commandOf(app: App, event: KeyboardEvent): (() => void) | null {
  const key = event.key.toLowerCase();
  if (key === "k" && !event.shiftKey) return () => app.place.focusSearch();
  if (key === "o" && event.shiftKey) return () => app.place.newConversation();
  if (key === "b" && !event.shiftKey) return () => app.place.toggleSidebar();
  if (key === "p" && !event.shiftKey && app.place.view === "conversation") return () => printShown(app);
  const canFind = app.place.view === "conversation" && app.conversation.instance.id !== "";
  if (key === "f" && !event.shiftKey && canFind && !app.place.isFinding) return () => app.place.setFinding(true); // again: the browser's
  return null;
}

/** The conversation that is shown, whole. */
export const printShown = async (app: App): Promise<void> =>
  (await pending(import("../later/views.ts"))).printConversation(app);

function plainOf(app: App, event: KeyboardEvent): (() => void) | null {
  if (event.key === "Escape") return app.conversation.running ? () => app.stop() : null;
  if (event.key === "?" && !isTyping(event.target)) return () => app.showShortcuts();
  return null;
}
