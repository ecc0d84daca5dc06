// Summaries of one conversation: what the server has, what is being made, and the verbs. No DOM in here.

/** Puts `compactions`, `compacting` and `compactionError` onto the conversation and tells it of changes. */
export class Summaries {
  /** `say(text, {isNotice})` tells the person. */
  constructor(api, conversation, say) {
    this.api = api;
    this.conversation = conversation;
    this.say = say;
    this.asked = null;
    Object.assign(conversation, { compactions: [], compactionError: "" }); // how one stands is in the page: `compacting`
    conversation.on("messages", () => this.#onMessages());
    conversation.on("session", (frame) => this.#onPhase(frame));
    conversation.on("session-failed", (text) => this.#onFailed(text));
    conversation.on("reconnected", () => {
      conversation.isCompactionReported = false; // frames sent meanwhile were missed
      this.read();
    });
    this.read();
  }

  /** Have older messages summarised. */
  async ask(instructions) {
    if (!this.conversation.instance.id) return this.say("There is nothing to summarise yet.", { isNotice: true });
    this.asked = { instructions };
    this.#set({ compacting: "waiting", compactionError: "", isCompactionReported: true });
    try {
      await this.api.compact(this.conversation.instance.id, instructions);
    } catch (error) {
      this.#onFailed(error.message);
    }
  }

  again() {
    return this.ask(this.asked?.instructions ?? "");
  }

  dismiss() {
    this.#set({ compactionError: "" });
  }

  /** Both resolve to whether it is stored; a refusal is shown. */
  reword = (id, text) => this.#change(this.api.rewordCompaction(id, text), "The summary was changed.");
  undo = (id) => this.#change(this.api.undoCompaction(id), "The model reads these messages again.");

  async read() {
    const { conversation } = this;
    if (!conversation.instance.id) return;
    try {
      const found = await this.api.compactions(conversation.instance.id);
      if (conversation.isClosed) return;
      conversation.compactions = found;
      conversation.emit("messages");
      conversation.emit("summaries");
    } catch {
      // The lines stay as they are; the next change of the list reads them again.
    }
  }

  async #change(request, done) {
    try {
      await request;
    } catch (error) {
      this.say(error.message, { isNotice: true });
      return false;
    }
    await this.read();
    this.say(done);
    return true;
  }

  /** Another history has taken the place of the one that was shown: it has summaries of its own. */
  #onMessages() {
    const ids = new Set(this.conversation.messages.map((message) => message.id));
    const isOther = this.known && ids.size > 0 && ![...ids].some((id) => this.known.has(id));
    this.known = ids;
    if (isOther) this.read();
  }

  #onPhase({ phase, compacted }) {
    const { conversation } = this;
    if (phase === "idle" && !compacted && conversation.compacting !== "running") return this.#onIdle();
    conversation.isCompactionReported = true;
    if (phase === "compacting") return this.#set({ compacting: "running", compactionError: "" });
    const found = this.asked && conversation.compacting && !compacted && !conversation.compactionError;
    if (found) this.say("There is nothing to summarise yet.", { isNotice: true });
    if (compacted) this.say("Older messages were summarised.");
    this.asked = conversation.compactionError ? this.asked : null;
    this.#set({ compacting: "" });
    this.read();
  }

  /** Context usage after a turn, a changed summary, or an end whose beginning was missed: read from the server. */
  #onIdle() {
    const { conversation } = this;
    if (conversation.compacting) {
      conversation.isCompactionReported = false;
      conversation.refreshSoon();
    }
    if (conversation.compactions.length) this.read();
  }

  #onFailed(text) {
    this.say("Summarising failed.");
    this.#set({ compacting: "", compactionError: text || "It did not work." });
  }

  #set(change) {
    Object.assign(this.conversation, change);
    this.conversation.emit("status");
  }
}
