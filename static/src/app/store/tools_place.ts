// Where one is among the tools of a conversation, and what one has written there and not sent. It outlives the view: another
// tab of the panel, another conversation.

import { Store } from "../lib/store.ts";

/** What is shown: the lists, one of their items, or a form for a new one. `key`: a server's id, an extension's scope and name, a rule's. */
export type ToolsView =
  | { kind: "list" }
  | { kind: "server"; key: string }
  | { kind: "extension"; key: string }
  | { kind: "new-server" }
  | { kind: "paste-servers" }
  | { kind: "new-extension" }
  | { kind: "rule"; key: string }
  | { kind: "new-rule" };

export class ToolsPlace extends Store {
  instanceId = "";
  view: ToolsView = { kind: "list" };
  readonly #drafts = new Map<string, string>();

  /** The place in a conversation: another one begins at its lists. */
  enter(instanceId: string): void {
    if (this.instanceId === instanceId) return;
    Object.assign(this, { instanceId, view: { kind: "list" } });
    this.changed();
  }

  open(view: ToolsView): void {
    this.view = view;
    this.changed();
  }

  /** What was written in a field of a form; never a secret. */
  draft = (form: string, field: string): string => this.#drafts.get(`${this.instanceId} ${form} ${field}`) ?? "";

  setDraft(form: string, field: string, text: string): void {
    this.#drafts.set(`${this.instanceId} ${form} ${field}`, text);
  }

  /** A form was sent. */
  forget(form: string): void {
    const start = `${this.instanceId} ${form} `;
    for (const key of [...this.#drafts.keys()]) if (key.startsWith(start)) this.#drafts.delete(key);
  }
}

/** The only one: the page shows one conversation. Loaded with the panel's view. */
export const toolsPlace = new ToolsPlace();
