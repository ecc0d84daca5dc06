// Messages on their way: kept in this browser until the server has accepted them, sent again with the same ids, so that
// a repeated send is one turn. What is in here is optimistic and looks it.

import { Emitter } from "./events.js";
import { recall, remember } from "./storage.js";

const RETRY_STEPS = [1000, 2000, 5000, 10_000, 20_000];

/** Entry: {requestId, body, shown: message|null, state: "sending"|"waiting"|"refused"|"accepted", error, tries}. */
export class Outbox extends Emitter {
  #key;
  #deliver;
  #timer = 0;
  #busy = false;
  #closed = false;
  #wake = () => this.flush();

  /** `deliver(entry)` performs the request and throws an ApiError; `key` names the conversation. */
  constructor(key, deliver) {
    super();
    this.#key = key;
    this.#deliver = deliver;
    this.entries = recall(`outbox.${key}`, []).map((entry) => ({ ...entry, state: "waiting", tries: 0 }));
    addEventListener("online", this.#wake);
    if (this.entries.length) setTimeout(this.#wake, 0);
  }

  add(entry) {
    this.entries.push({ ...entry, state: "sending", error: "", tries: 0 });
    this.#changed();
    this.flush();
  }

  remove(requestId) {
    this.entries = this.entries.filter((entry) => entry.requestId !== requestId);
    this.#changed();
  }

  /**
   * Forget what the conversation shows: it was accepted, with or without a frame. And what a page read after its acceptance lacks:
   * another version has taken its place meanwhile.
   */
  settle(knownIds, readAt = 0) {
    const isSettled = (
      { shown, state, acceptedAt },
    ) => (shown ? knownIds.has(shown.id) || acceptedAt < readAt : state === "accepted");
    const left = this.entries.filter((entry) => !isSettled(entry));
    if (left.length === this.entries.length) return;
    this.entries = left;
    this.#changed();
  }

  retry(requestId) {
    const entry = this.entries.find((item) => item.requestId === requestId);
    if (entry) Object.assign(entry, { state: "waiting", tries: 0, error: "" });
    this.#changed();
    this.flush();
  }

  /** Send what waits, in order, one at a time. */
  async flush() {
    if (this.#busy || this.#closed) return;
    this.#busy = true;
    clearTimeout(this.#timer);
    try {
      for (const entry of [...this.entries]) {
        if (entry.state !== "sending" && entry.state !== "waiting") continue;
        if (!(await this.#send(entry))) return this.#holdBack();
      }
    } finally {
      this.#busy = false;
    }
    if (this.entries.some((entry) => entry.state === "sending")) this.flush();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    removeEventListener("online", this.#wake);
  }

  /** What stands behind an entry that waits is sent after it, so it waits too: asking again at once would never end. */
  #holdBack() {
    for (const entry of this.entries) if (entry.state === "sending") entry.state = "waiting";
    this.#changed();
  }

  async #send(entry) {
    entry.state = "sending";
    this.emit("change");
    try {
      await this.#deliver(entry);
      Object.assign(entry, { state: "accepted", acceptedAt: performance.now() });
      return true;
    } catch (error) {
      entry.error = error.message;
      if (!error.isTemporary) {
        entry.state = "refused";
        return true;
      }
      entry.state = "waiting";
      const pause = RETRY_STEPS[Math.min(entry.tries++, RETRY_STEPS.length - 1)];
      this.#timer = setTimeout(this.#wake, pause);
      return false;
    } finally {
      this.#changed();
    }
  }

  #changed() {
    const kept = this.entries.filter((entry) => entry.state !== "accepted").map(({ requestId, body, shown }) => ({
      requestId,
      body,
      shown,
    }));
    remember(`outbox.${this.#key}`, kept.length ? kept : null);
    this.emit("change");
  }
}
