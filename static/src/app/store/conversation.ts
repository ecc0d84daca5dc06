// One conversation, live: frames of the socket move the transcript at once, the page of the API settles it. It follows
// the server and invents nothing. No DOM in here.

import { batch } from "@preact/signals-core";
import {
  type ConversationFrame,
  type FrameMessage,
  type ModelChoiceFrame,
  readChunk,
  type ResponseFrame,
  type ServerFrame,
  type TranscriptFrame,
} from "../net/frames.ts";
import { choiceOf } from "./instances.ts";
import { fromItem, mergeTranscript } from "./path.ts";
import type { TurnStream } from "./stream.ts";
import { type Line, Transcript } from "./transcript.ts";
import type { Instance, Message } from "./types.ts";

export class Conversation extends Transcript {
  readonly #acked = new Set<string>();
  #hadLine = false;

  // --- the line -----------------------------------------------------------------------------------------------------

  /** Follow this line from now on; it is closed with the conversation. */
  attach(line: Line): void {
    this.line = line;
    line.on("open", () => this.#onOpen());
    line.on("frame", (frame) => this.#onFrame(frame));
    line.connect();
  }

  override close(): void {
    super.close();
    this.line?.close();
  }

  /** Let the others know that this person is here. */
  sayHere(isTyping: boolean): void {
    this.line?.send({ type: "think_ping", typing: isTyping });
  }

  #onOpen(): void {
    this.#acked.clear();
    this.askToResume();
    if (this.isLoaded && this.#hadLine) this.refresh();
    if (this.#hadLine) this.emit("reconnected");
    this.#hadLine = true;
  }

  #onFrame(frame: ServerFrame): void {
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
        return this.#setRecovering(frame.recovering === true);
      case "cf_agent_identity":
        return this.emit("joined");
      case "cf_agent_session":
        return this.emit("session", frame);
      case "cf_agent_session_error":
        return this.emit("session-failed", frame.error ?? "");
      case "cf_agent_mcp_servers":
        return this.emit("servers");
      case "agent-tool-event":
        return this.emit("run", frame);
      case "think_presence":
        return this.emit("presence", { author: frame.author, isTyping: frame.typing });
      case "think_people":
        return this.emit("people");
      case "think_projects":
        return this.emit("projects");
      case "think_conversation":
        return this.#onListed(frame);
      case "think_model_choice":
        return this.#onModelChoice(frame);
    }
  }

  #onListed({ type: _, ...news }: ConversationFrame): void {
    this.emit("listed", news);
    if (news.id !== this.instance.id) return;
    const { id: _id, ...change } = news;
    this.update(change);
  }

  #onModelChoice({ instanceId, model, model_choice: choice, model_notice: notice }: ModelChoiceFrame): void {
    if (instanceId !== this.instance.id) return;
    const change: Partial<Instance> = {};
    if (choice !== undefined) change.modelChoice = choice && choiceOf(choice);
    if (model !== undefined) change.model = model ?? "";
    if (notice !== undefined) change.modelNotice = notice ?? "";
    this.update(change);
  }

  #setRecovering(isRecovering: boolean): void {
    this.put({ isRecovering });
  }

  #onResuming(id = ""): void {
    if (!id || this.#acked.has(id)) return;
    this.#acked.add(id);
    const stream = this.#offered(id);
    stream.wantsReplay = false;
    this.run(stream);
    this.line?.send({ type: "cf_agent_stream_resume_ack", id });
  }

  #onPending(id = ""): void {
    if (!id) return;
    this.run(this.#offered(id));
  }

  /** The stream that the server offers. One that had ended goes on: it is followed anew, from its beginning. */
  #offered(id: string): TurnStream {
    const known = this.streams.get(id);
    return known?.isDone ? this.streamAnew(known) : this.stream(id);
  }

  #onNothingRuns({ probeId, reason }: { probeId?: string; reason?: string }): void {
    if (probeId && probeId !== this.probe) return;
    if (reason === "continuation-owned") return;
    if (this.running) this.refresh(); // it ended while no socket was open: the row has the outcome
  }

  #onResponse(frame: ResponseFrame): void {
    const stream = this.stream(frame.id);
    if (stream.isDone && !frame.done) return;
    if (frame.error && frame.body) stream.errorText = frame.body;
    else if (frame.body) this.#onChunk(stream, frame.body, frame);
    if (frame.done) this.#onDone(stream, frame);
  }

  #onChunk(stream: TurnStream, body: string, frame: ResponseFrame): void {
    const chunk = readChunk(body);
    if (!chunk) return; // a text for people on a terminal frame
    if (!stream.isDone && this.running !== stream) this.run(stream);
    const { message, isPaused, activity } = stream;
    const verdict = stream.take(chunk, frame.seq, (id) => this.#openMessage(id, stream));
    if (verdict === "gap" && !stream.wantsReplay) {
      stream.wantsReplay = true;
      this.#acked.delete(stream.requestId);
      this.askToResume();
    }
    if (isPaused || stream.isPaused || stream.activity !== activity) {
      this.changed();
    }
    if (verdict === "applied" && message && stream.message === message) this.touchSoon(message.id);
    const isWords = !chunk.type.startsWith("data-"); // the mark of the seam comes before anything goes on
    if (this.isRecovering && !frame.replay && isWords && verdict === "applied") this.#setRecovering(false);
  }

  /** The message that a stream names: it begins anew, at the end of the list where it is not known. */
  #openMessage(id: string, stream: TurnStream): Message {
    const known = this.messages.find((item) => item.id === id);
    const message = known ?? fromItem({ id, role: "assistant" });
    message.parts = [];
    message.isLive = true;
    batch(() => {
      if (!known && !this.place) this.put({ messages: [...this.messages, message] }); // who reads elsewhere finds it at the end
      if (!this.place) this.put({ leafId: id });
      this.run(stream);
      this.touch(id);
    });
    if (this.queued.length) this.refreshSoon(); // what it answers waits no more: it has its place
    return message;
  }

  #onDone(stream: TurnStream, frame: ResponseFrame): void {
    const { outcome = "completed" } = frame;
    if (outcome === "recovering") return this.#setRecovering(true);
    this.flushTouched(); // who follows the answer hears its last words before its end
    this.#acked.delete(frame.id); // offered once more, it goes on
    const isFirst = !stream.isDone; // an answer that is replayed on a second socket ends there as well
    stream.isDone = true;
    stream.activity = null;
    this.fresh.moved();
    const hasFailed = frame.error === true || outcome === "error" || stream.errorText !== "";
    batch(() => {
      if (stream.message) {
        stream.message.isLive = false;
        this.touch(stream.message.id);
      }
      const error = frame.body || stream.errorText;
      this.put({
        isRecovering: false,
        failed: hasFailed && outcome !== "aborted" ? { error } : this.failed,
        running: this.running === stream ? null : this.running,
      });
    });
    const tell = () => this.emit("spoken-end", { outcome: hasFailed ? "error" : outcome });
    const refreshed = this.refresh();
    if (!isFirst) return;
    if (stream.message) tell();
    else refreshed.finally(tell); // it ended before this page followed it: whether it asks something has yet to be read
  }

  #onTranscript({ messages, sessionId = null, version }: TranscriptFrame): void {
    if (!Array.isArray(messages)) return;
    if (this.sessionId === null && sessionId) { // of a new conversation
      this.put({ sessionId });
      this.update({ sessionId });
    }
    const isOther = sessionId !== this.sessionId;
    if (this.place || (!isOther && this.fresh.isOlder(version))) return this.refreshSoon();
    if (!isOther) this.fresh.note(version);
    this.show(mergeTranscript(this, messages, this.running?.message ?? null));
    if (this.isLoaded) this.refreshSoon(); // the page adds siblings, turns and what failed
  }

  #onMessageUpdated(updated: FrameMessage | undefined): void {
    const message = this.messages.find((item) => item.id === updated?.id);
    if (!updated || !message) return;
    const { parts, metadata } = fromItem(updated);
    this.apply([{ message, change: updated.metadata ? { parts, metadata } : { parts } }]);
  }

  #onClear(): void {
    this.delegated?.clear();
    this.fresh.moved();
    for (const stream of this.streams.values()) stream.isDone = true;
    this.put({
      messages: [],
      queued: [],
      hasMore: false,
      hasNewer: false,
      place: null,
      failed: null,
      running: null,
      leafId: null,
    });
  }

  // --- verbs --------------------------------------------------------------------------------------------------------

  /** An accepted send: remember the turn so that it can be stopped before its first chunk. */
  accepted(requestId: string, turnId: string): void {
    const stream = this.stream(requestId, turnId);
    this.fresh.moved();
    if (!stream.isDone && !this.running) this.run(stream);
    this.refreshSoon();
  }

  /** Stop the turn that runs. Throws an `ApiError`. */
  async stop(): Promise<void> {
    const stream = this.running;
    if (!stream) return;
    this.put({ isStopping: true });
    try {
      if (stream.turnId) await this.api.cancelTurn(stream.turnId);
      else this.line?.send({ type: "cf_agent_chat_request_cancel", id: stream.requestId });
    } finally {
      this.put({ isStopping: false });
      this.refreshSoon();
    }
  }

  /** Show another version of a message, and what follows it. */
  async selectSibling(messageId: string): Promise<void> {
    if (this.place?.isForeign) return this.openAt(messageId, this.place.sessionId ?? ""); // another history: only looked at
    await this.api.selectLeaf(this.instance.id, messageId);
    if (!this.place) return this.refresh();
    this.put({ place: { ...this.place }, messages: [] }); // what is under way to the former place comes too late
    await this.openAt(messageId);
  }
}
