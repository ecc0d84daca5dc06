// One conversation, live: frames of the socket move the transcript at once, the page of the API settles it. It follows
// the server and invents nothing. No DOM in here.

import { newId } from "./ids.js";
import { mergeTranscript } from "./path.js";
import { Transcript } from "./transcript.js";

/**
 * Events of the transcript, "spoken-end" ({outcome}: an answer has ended), "titled" ({id, title}: of any conversation),
 * "reconnected", "session" and "session-failed" (a summary).
 */
export class Conversation extends Transcript {
  #acked = new Set();
  #probe = "";

  // --- the line -----------------------------------------------------------------------------------------------------

  attach(socket) {
    this.socket = socket;
    socket.on("open", () => this.#onOpen());
    socket.on("frame", (frame) => this.#onFrame(frame));
    socket.on("state", () => this.emit("status"));
    socket.connect();
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.refreshTimer);
    this.socket?.close();
  }

  #onOpen() {
    this.#acked.clear();
    this.#askToResume();
    if (this.isLoaded && this.hadLine) this.refresh();
    if (this.hadLine) this.emit("reconnected");
    this.hadLine = true;
  }

  #askToResume() {
    this.#probe = newId("prb");
    this.socket?.send({ type: "cf_agent_stream_resume_request", probeId: this.#probe });
  }

  #onFrame(frame) {
    switch (frame.type) {
      case "cf_agent_use_chat_response":
        return this.#onResponse(frame);
      case "cf_agent_stream_resuming":
        return this.#onResuming(frame.id);
      case "cf_agent_stream_pending":
        return this.#onPending(frame.id);
      case "cf_agent_stream_resume_none":
        return this.#onNothingRuns(frame);
      case "cf_agent_chat_messages":
        return this.#onTranscript(frame);
      case "cf_agent_message_updated":
        return this.#onMessageUpdated(frame.message);
      case "cf_agent_chat_clear":
        return this.#onClear();
      case "cf_agent_chat_recovering":
        this.isRecovering = frame.recovering === true;
        return this.emit("status");
      case "cf_agent_session":
        return this.emit("session", frame);
      case "cf_agent_session_error":
        return this.emit("session-failed", frame.error);
      case "think_conversation":
        return this.emit("titled", { id: frame.id, title: frame.title });
    }
  }

  #onResuming(id) {
    if (!id || this.#acked.has(id)) return;
    this.#acked.add(id);
    const stream = this.stream(id);
    stream.wantsReplay = false;
    if (!stream.isDone) this.run(stream);
    this.socket.send({ type: "cf_agent_stream_resume_ack", id });
  }

  #onPending(id) {
    if (!id) return;
    const stream = this.stream(id);
    if (!stream.isDone) this.run(stream);
  }

  #onNothingRuns(frame) {
    if (frame.probeId && frame.probeId !== this.#probe) return;
    if (frame.reason === "continuation-owned") return;
    if (this.running) this.refresh(); // it ended while no socket was open: the row has the outcome
  }

  #onResponse(frame) {
    const stream = this.stream(frame.id);
    if (stream.isDone && !frame.done) return;
    if (frame.error && frame.body) stream.errorText = frame.body;
    else if (frame.body) this.#onChunk(stream, frame);
    if (frame.done) this.#onDone(stream, frame);
  }

  #onChunk(stream, frame) {
    let chunk;
    try {
      chunk = JSON.parse(frame.body);
    } catch {
      return; // a text for people on a terminal frame
    }
    if (!chunk || typeof chunk !== "object") return;
    if (!stream.isDone && this.running !== stream) this.run(stream);
    const before = stream.message;
    const wasPaused = stream.isPaused;
    const verdict = stream.take(chunk, frame.seq, (id) => this.#openMessage(id, stream));
    if (verdict === "gap" && !stream.wantsReplay) {
      stream.wantsReplay = true;
      this.#acked.delete(stream.requestId);
      this.#askToResume();
    }
    if (wasPaused || stream.isPaused) this.emit("status");
    if (verdict === "applied" && stream.message === before) this.emit("message", stream.message.id);
    if (this.isRecovering && !frame.replay && verdict === "applied") {
      this.isRecovering = false;
      this.emit("status");
    }
  }

  #openMessage(id, stream) {
    let message = this.messages.find((item) => item.id === id);
    if (message) message.parts = [];
    else {
      message = { id, role: "assistant", parts: [], metadata: {}, siblings: [id], turn: null, toolMs: {} };
      if (!this.place) this.messages.push(message); // who reads elsewhere finds it at the end
    }
    message.isLive = true;
    if (this.queued.length) this.refreshSoon(); // what it answers waits no more: it has its place
    if (!this.place) this.leafId = id;
    this.run(stream);
    this.emit("messages");
    return message;
  }

  #onDone(stream, frame) {
    if (frame.outcome === "recovering") {
      this.isRecovering = true;
      return this.emit("status");
    }
    stream.isDone = true;
    this.fresh.moved();
    if (stream.message) {
      stream.message.isLive = false;
      this.emit("message", stream.message.id);
    }
    const failed = frame.error === true || frame.outcome === "error" || stream.errorText !== "";
    if (failed && frame.outcome !== "aborted") this.failed = { error: frame.body || stream.errorText };
    if (this.running === stream) this.running = null;
    this.isRecovering = false;
    this.emit("spoken-end", { outcome: failed ? "error" : frame.outcome ?? "completed" });
    this.emit("status");
    this.refresh();
  }

  #onTranscript(frame) {
    if (!Array.isArray(frame.messages)) return;
    this.sessionId ??= frame.sessionId ?? null; // of a new conversation
    const isOther = frame.sessionId !== this.sessionId;
    if (this.place || (!isOther && this.fresh.isOlder(frame.version))) return this.refreshSoon();
    if (!isOther) this.fresh.note(frame.version);
    mergeTranscript(this, frame.messages);
    this.emit("messages");
    if (this.isLoaded) this.refreshSoon(); // the page adds siblings, turns and what failed
  }

  #onMessageUpdated(message) {
    const known = this.messages.find((item) => item.id === message?.id);
    if (!known) return;
    known.parts = message.parts ?? [];
    known.metadata = message.metadata ?? known.metadata;
    this.emit("message", known.id);
  }

  #onClear() {
    Object.assign(this, {
      messages: [],
      queued: [],
      hasMore: false,
      hasNewer: false,
      place: null,
      failed: null,
      running: null,
      leafId: null,
    });
    this.fresh.moved();
    for (const stream of this.streams.values()) stream.isDone = true;
    this.emit("messages");
    this.emit("place");
    this.emit("status");
  }

  // --- verbs --------------------------------------------------------------------------------------------------------

  /** An accepted send: remember the turn so that it can be stopped before its first chunk. */
  accepted(requestId, turnId) {
    const stream = this.stream(requestId, turnId);
    this.fresh.moved();
    if (!stream.isDone && !this.running) this.run(stream);
    this.refreshSoon();
  }

  async stop() {
    const stream = this.running;
    if (!stream) return;
    this.isStopping = true;
    this.emit("status");
    try {
      if (stream.turnId) await this.api.cancelTurn(stream.turnId);
      else this.socket?.send({ type: "cf_agent_chat_request_cancel", id: stream.requestId });
    } finally {
      this.isStopping = false;
      this.refreshSoon();
    }
  }

  async selectSibling(messageId) {
    if (this.place?.isForeign) return this.openAt(messageId, this.place.sessionId); // another history: only looked at
    await this.api.selectLeaf(this.instance.id, messageId);
    if (!this.place) return this.refresh();
    this.place = { ...this.place }; // what is under way to the former place comes too late
    this.messages = [];
    await this.openAt(messageId);
  }
}
