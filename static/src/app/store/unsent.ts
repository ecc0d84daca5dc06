// First messages of conversations that the server does not know yet. Their name belongs to one history entry of one tab, so
// that a reload or "back" sends the same once more and another tab never writes into it. What no tab shows any more is sent
// in the background, as the conversation of its own that it is.

import { recallAll, remember } from "../lib/storage.ts";
import { type Begun, newInstance, pathOf } from "./instances.ts";
import { type Deliver, keptEntries, Outbox } from "./outbox.ts";
import type { Instance, OutboxEntry } from "./types.ts";

const PREFIX = "unsent.";

/** A conversation as far as delivering needs it: one that is shown, or one whose tab is gone. */
export interface Destination {
  readonly instance: Instance;
  update(change: Partial<Instance>): void;
  accepted(requestId: string, turnId: string): void;
}

const waiting = (begun: Pick<Begun, "agent" | "name">) => keptEntries(pathOf(begun));

/** The conversation that was begun at this history entry and that still waits to be sent, or null. */
export function keptInHistory(): Begun | null {
  const kept: Begun | undefined = history.state?.unsent;
  return kept && waiting(kept).length ? kept : null;
}

/** A new conversation is about to send something. */
export function keep({ agent, name, isTemporary, projectId }: Begun): void {
  const unsent: Begun = { agent, name, isTemporary, projectId };
  remember(PREFIX + name, unsent);
  history.replaceState({ ...history.state, unsent }, "");
}

/** Its message has arrived. */
export function arrived({ name }: Pick<Begun, "name">): void {
  remember(PREFIX + name, null);
}

/** A conversation that no tab shows: what becomes of it is not followed. */
class Unshown implements Destination {
  instance: Instance;

  constructor(begun: Begun) {
    this.instance = newInstance(begun);
  }

  update(change: Partial<Instance>): void {
    this.instance = { ...this.instance, ...change };
  }

  accepted(): void {}
}

/** What the page does for it: `deliver` throws an `ApiError`; `refused` returns whether the message is kept elsewhere. */
export interface UnsentCare {
  deliver(conversation: Destination, ...entry: Parameters<Deliver>): Promise<unknown>;
  refused(instance: Instance, entry: OutboxEntry): boolean;
}

export class Unsent {
  readonly #outboxes = new Map<string, Outbox>();
  readonly #on: UnsentCare;

  constructor(on: UnsentCare) {
    this.#on = on;
  }

  /** Send what waits in conversations other than the one that is shown now. */
  take(shown: Pick<Instance, "name">): void {
    this.#leave(shown.name);
    for (const [name, begun] of recallAll<Begun>(PREFIX)) {
      if (!begun || name === shown.name || this.#outboxes.has(name)) continue;
      if (waiting(begun).length) this.#send(begun);
      else arrived({ name });
    }
  }

  #send(begun: Begun): void {
    const conversation = new Unshown(begun);
    const outbox = new Outbox(pathOf(begun), async (entry, ...rest) => {
      // Another tab may show it: a message withdrawn there is not sent.
      if (waiting(begun).some(({ requestId }) => requestId === entry.requestId)) {
        await this.#on.deliver(conversation, entry, ...rest);
      }
    });
    this.#outboxes.set(begun.name, outbox);
    outbox.on("change", () => {
      const refused = outbox.entries.find(({ state }) => state === "refused");
      if (refused && this.#on.refused(conversation.instance, refused)) outbox.remove(refused.requestId);
      else if (outbox.entries.every(({ state }) => state === "accepted" || state === "refused")) {
        this.#leave(begun.name);
      }
    });
  }

  #leave(name: string): void {
    this.#outboxes.get(name)?.close();
    this.#outboxes.delete(name);
  }
}
