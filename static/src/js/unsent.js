// First messages of conversations that the server does not know yet. Their name belongs to one history entry of one tab, so
// that a reload or "back" sends the same once more and another tab never writes into it. What no tab shows any more is sent
// in the background, as the conversation of its own that it is.

import { Outbox } from "./outbox.js";
import { pathOf } from "./sidebar.js";
import { recall, recallAll, remember } from "./storage.js";

const PREFIX = "unsent.";

const waiting = (instance) => recall(`outbox.${pathOf(instance)}`, []);

/** The conversation that was begun at this history entry and that still waits to be sent: {agent, name}, or null. */
export function keptInHistory() {
  const kept = history.state?.unsent;
  return kept && waiting(kept).length ? kept : null;
}

/** A new conversation is about to send something. */
export function keep({ agent, name }) {
  remember(PREFIX + name, agent);
  history.replaceState({ ...history.state, unsent: { agent, name } }, "");
}

/** Its message has arrived. */
export function arrived({ name }) {
  remember(PREFIX + name, null);
}

export class Unsent {
  #outboxes = new Map();

  /** `on`: {deliver(conversation, entry) as for a shown conversation, refused(instance, entry)}. */
  constructor(on) {
    this.on = on;
  }

  /** Send what waits in conversations other than the one that is shown now. */
  take(shown) {
    this.#leave(shown.name);
    for (const [name, agent] of recallAll(PREFIX)) {
      const instance = { id: "", agent, name, isNew: true };
      if (name === shown.name || this.#outboxes.has(name)) continue;
      if (waiting(instance).length) this.#send(instance);
      else arrived(instance);
    }
  }

  #send(instance) {
    const conversation = { instance, accepted: () => {} };
    const outbox = new Outbox(pathOf(instance), async (entry) => {
      // Another tab may show it: a message withdrawn there is not sent.
      if (waiting(instance).some(({ requestId }) => requestId === entry.requestId)) {
        await this.on.deliver(conversation, entry);
      }
    });
    this.#outboxes.set(instance.name, outbox);
    outbox.on("change", () => {
      const refused = outbox.entries.find(({ state }) => state === "refused");
      if (refused && this.on.refused(instance, refused)) outbox.remove(refused.requestId);
      else if (outbox.entries.every(({ state }) => state === "accepted" || state === "refused")) {
        this.#leave(instance.name);
      }
    });
  }

  #leave(name) {
    this.#outboxes.get(name)?.close();
    this.#outboxes.delete(name);
  }
}
