// One running (or just finished) turn as this browser follows it: which chunks it has, and the message they fold into.

import { applyChunk } from "./fold.js";

export class TurnStream {
  constructor(requestId) {
    this.requestId = requestId;
    this.turnId = "";
    this.message = null;
    this.lastSeq = -1; // offset of the last chunk taken
    this.errorText = "";
    this.waits = []; // what it is parked for: [{kind, label, since}]
    this.retry = null; // when its model is asked again: {code, attempt, attempts, retryAt in ms}
    this.heardAt = Date.now(); // when something last came
    this.isDone = false;
    this.wantsReplay = false;
  }

  /** "waiting" before the first chunk, then "answering". */
  get phase() {
    return this.message ? "answering" : "waiting";
  }

  /** Whether it waits for something that it has reported. */
  get isPaused() {
    return this.waits.length > 0 || this.retry !== null;
  }

  /** Take over what a page says of its waits. */
  expect({ waits, retry }) {
    this.waits = waits;
    this.retry = retry;
  }

  /**
   * Take one chunk. Returns "applied", "old" (seen before), "gap" (some before it are missing: ask for a replay) or
   * "ignored". `openMessage(id)` gives the message to fold into when the stream names it.
   */
  take(chunk, seq, openMessage) {
    this.heardAt = Date.now();
    if (Number.isInteger(seq)) {
      if (seq <= this.lastSeq) return "old";
      if (seq > this.lastSeq + 1) return "gap";
      this.lastSeq = seq;
    }
    // Whatever comes after a wait says that it is over.
    const status = (chunk.type === "data-think-status" && chunk.data) || {};
    this.waits = status.kind === "waiting" ? status.waits ?? [] : [];
    this.retry = status.kind === "retry" ? retryOf(status) : null;
    if (chunk.type === "start" && chunk.messageId && this.message?.id !== chunk.messageId) {
      this.message = openMessage(chunk.messageId);
    }
    if (!this.message) return "ignored";
    return applyChunk(this.message, chunk) ? "applied" : "ignored";
  }
}

/** A clock that is behind the server's must not make the wait longer than it is. */
function retryOf({ code, attempt, attempts, delaySeconds, retryAt }) {
  return { code, attempt, attempts, retryAt: Math.min(Date.parse(retryAt), Date.now() + delaySeconds * 1000) };
}
