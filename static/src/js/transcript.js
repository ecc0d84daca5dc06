// The list of messages of one conversation as the server has it: read by pages, with the turn that runs. No DOM in here.

import { Emitter } from "./events.js";
import { fromPage, mergeNewest } from "./path.js";
import { TurnStream } from "./stream.js";

const REFRESH_PAUSE = 60;
const COMPACTION_LOOK = 3_000;

/** Events: "messages" (the list changed), "message" (id: its parts changed), "status". */
export class Transcript extends Emitter {
  #refreshing = null;
  #refreshAgain = false;

  constructor(api, instance, page = null) {
    super();
    this.api = api;
    this.instance = instance;
    this.streams = new Map(); // request id to TurnStream
    this.refreshTimer = 0;
    this.messages = [];
    this.queued = [];
    this.hasMore = false;
    this.failed = null;
    this.leafId = null;
    this.running = null;
    this.isRecovering = false;
    this.compacting = ""; // "waiting" or "running": a summary is on its way
    this.isCompactionHeard = false; // a frame told of it since the line is there: from then on frames count, pages come too late
    this.isLoaded = false;
    this.loadError = null;
    this.readAt = 0; // when the last page was asked for
    this.isClosed = false;
    if (page) this.takePage(page);
  }

  /** The stream of a request; `turnId` where it is known. */
  stream(requestId, turnId = "") {
    let stream = this.streams.get(requestId);
    if (!stream) this.streams.set(requestId, (stream = new TurnStream(requestId)));
    stream.turnId = turnId || stream.turnId;
    return stream;
  }

  run(stream) {
    this.running = stream;
    this.failed = null;
    this.emit("status");
  }

  /** Read the newest page again and settle on it. Calls while one runs are folded into one more. */
  refresh() {
    clearTimeout(this.refreshTimer);
    if (this.#refreshing) {
      this.#refreshAgain = true;
      return this.#refreshing;
    }
    this.#refreshing = this.#readPage().finally(() => {
      this.#refreshing = null;
      if (this.#refreshAgain && !this.isClosed) {
        this.#refreshAgain = false;
        this.refresh();
      }
    });
    return this.#refreshing;
  }

  refreshSoon() {
    clearTimeout(this.refreshTimer);
    this.refreshTimer = setTimeout(() => this.refresh(), REFRESH_PAUSE);
  }

  async #readPage() {
    if (!this.instance.id) return;
    const asked = performance.now();
    try {
      const page = await this.api.messages(this.instance.id, { limit: 50 });
      if (this.isClosed) return;
      this.loadError = null;
      this.readAt = asked;
      this.takePage(page);
    } catch (error) {
      this.loadError = error;
      this.emit("status");
    }
  }

  takePage(raw) {
    const page = fromPage(raw);
    const live = this.running;
    const running = page.running && this.#adopt(page);
    mergeNewest(this, page, running?.message ?? null);
    this.queued = page.queued;
    this.leafId = page.leafId;
    if (!this.isCompactionHeard) this.#takeCompacting(page.compacting);
    if (running) this.running = running;
    else if (!live || live.isDone || !this.socket || this.socket.state !== "open") this.running = null;
    else if (live && !page.running) this.#forgetWhenOver(live);
    this.failed = this.running ? null : page.failed;
    this.isLoaded = true;
    this.emit("messages");
    this.emit("status");
  }

  /** How a summary stands, where no frame has told yet. Its end may have been told before anybody here listened: look again. */
  #takeCompacting(state) {
    this.compacting = state;
    clearTimeout(this.compactionTimer);
    if (state) this.compactionTimer = setTimeout(() => this.isClosed || this.isCompactionHeard || this.refresh(), COMPACTION_LOOK);
  }

  /** The page was read while the turn ran: its answer comes by the stream, what has come of it stays in sight. */
  #adopt(page) {
    const { requestId, turnId } = page.running;
    const stream = this.stream(requestId, turnId);
    if (stream.isDone) return null;
    if (stream.message && !page.messages.some((item) => item.id === stream.message.id)) page.messages.push(stream.message);
    if (stream.message) stream.message.isLive = true;
    return stream;
  }

  /** The page says that nothing runs although the line has not said "done" yet: the page is the truth, it is only early. */
  #forgetWhenOver(stream) {
    if (stream.phase === "waiting" && !stream.turnId) return; // accepted a moment ago, after the page was read
    setTimeout(() => {
      if (this.running === stream && !stream.isDone && !this.isClosed) this.refresh();
    }, 1500);
    if (stream.wasMissing) {
      stream.isDone = true;
      this.running = null;
    }
    stream.wasMissing = true;
  }

  /** Load the page before the first message. */
  async loadOlder() {
    if (!this.hasMore || this.isLoadingOlder || !this.messages.length) return;
    this.isLoadingOlder = true;
    try {
      const page = fromPage(await this.api.messages(this.instance.id, { before: this.messages[0].id, limit: 50 }));
      const known = new Set(this.messages.map((item) => item.id));
      this.messages.unshift(...page.messages.filter((item) => !known.has(item.id)));
      this.hasMore = page.hasMore;
      this.emit("messages", { isPrepend: true });
    } finally {
      this.isLoadingOlder = false;
    }
  }

  /** Keep the newest messages only; the others are a page away. */
  forgetOlder(kept) {
    this.messages.splice(0, this.messages.length - kept);
    this.hasMore = true;
  }

  /** Show a branch as it will be after an edit or a regenerate: everything after `messageId` goes out of sight. */
  cutAfter(messageId) {
    const at = messageId === null ? -1 : this.messages.findIndex((item) => item.id === messageId);
    if (messageId !== null && at < 0) return;
    this.messages.splice(at + 1);
    this.failed = null;
    this.emit("messages");
  }
}
