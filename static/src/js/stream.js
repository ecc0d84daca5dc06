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
    this.heardAt = Date.now(); // when something last came
    this.isDone = false;
    this.wantsReplay = false;
  }

  /** "waiting" before the first chunk, then "answering". */
  get phase() {
    return this.message ? "answering" : "waiting";
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
    this.waits = chunk.type === "data-think-status" && chunk.data?.kind === "waiting" ? chunk.data.waits ?? [] : [];
    if (chunk.type === "start" && chunk.messageId && this.message?.id !== chunk.messageId) {
      this.message = openMessage(chunk.messageId);
    }
    if (!this.message) return "ignored";
    return applyChunk(this.message, chunk) ? "applied" : "ignored";
  }
}
