// The list of messages of one conversation as the server has it: read by pages, with the turn that runs. No DOM in here.

import { Emitter } from "./events.js";
import { Freshness } from "./freshness.js";
import { fromPage, mergeNewest, refreshKnown } from "./path.js";
import { TurnStream } from "./stream.js";

const REFRESH_PAUSE = 60;
const AGAIN_STEPS = [1_000, 2_000, 5_000, 10_000]; // after a read that did not come
const MOST = 600; // messages in the page while one reads on, in either direction
const DROPPED = 200;
const COMPACTION_LOOK = 3_000;

/**
 * Events: "messages" (the list changed; {isPrepend, isAppend, isElsewhere} say how), "message" (id: its parts changed),
 * "status", "place" (what is read is another place than the end of the shown path, or no longer), "switched" (another
 * history of the conversation is the current one).
 */
export class Transcript extends Emitter {
  #refreshing = null;
  #refreshAgain = false;
  #failures = 0; // reads in a row

  constructor(api, instance, page = null) {
    super();
    this.api = api;
    this.instance = instance;
    this.streams = new Map(); // request id to TurnStream
    this.refreshTimer = 0;
    this.messages = [];
    this.queued = [];
    this.hasMore = false;
    this.hasNewer = false;
    /** Where one reads when it is not the newest page of the shown path: {sessionId, leafId, isOther}. */
    this.place = null;
    this.sessionId = instance.sessionId ?? null;
    this.failed = null;
    this.leafId = null;
    this.running = null;
    this.isRecovering = false;
    this.compacting = ""; // "waiting" or "running": a summary is on its way
    this.isCompactionReported = false; // a frame reported it since the socket opened: from then on frames count, pages come too late
    this.isLoaded = false;
    this.loadError = null;
    this.readAt = 0; // when the last page was asked for
    this.fresh = new Freshness();
    this.socket = null; // of a conversation that can continue
    this.isClosed = false;
    if (page) this.takePage(page);
  }

  /** The stream of a request; `turnId` where it is known. */
  stream(requestId, turnId = "") {
    let stream = this.streams.get(requestId);
    if (!stream) this.streams.set(requestId, stream = new TurnStream(requestId));
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

  refreshSoon(pause = REFRESH_PAUSE) {
    clearTimeout(this.refreshTimer);
    this.refreshTimer = setTimeout(() => this.refresh(), pause);
  }

  async #readPage() {
    if (!this.instance.id) return;
    const asked = performance.now();
    try {
      const page = await this.api.messages(this.instance.id, { limit: 50 });
      if (this.isClosed) return;
      this.loadError = null;
      this.#failures = 0;
      // It may lack what frames have added since, and would remove it from view.
      if (this.fresh.isTooOld(page.session_id === this.sessionId ? page.version : undefined, asked)) {
        return this.refreshSoon();
      }
      this.readAt = asked;
      this.takePage(page);
    } catch (error) {
      this.loadError = error;
      this.emit("status");
      if (error.isTemporary && !this.isClosed) {
        this.refreshSoon(AGAIN_STEPS[Math.min(this.#failures++, AGAIN_STEPS.length - 1)]);
      }
    }
  }

  takePage(raw) {
    const page = fromPage(raw);
    if (this.#isOlderThanAnEnd(page)) return this.refreshSoon();
    this.#noteSession(page.sessionId);
    this.fresh.note(page.version);
    if (this.place) return this.#noteRunning(page);
    const live = this.running;
    const running = page.running && this.#adopt(page);
    // A page that was read before the turn existed lacks the answer that is streaming.
    const early = !page.running && live && !live.isDone && !live.wasMissing ? live : null;
    mergeNewest(this, page, (running || early)?.message ?? null);
    this.queued = page.queued;
    this.leafId = page.leafId;
    if (!this.isCompactionReported) this.#takeCompacting(page.compacting);
    if (running) this.running = running;
    else if (!live || live.isDone || !this.socket || this.socket.state !== "open") this.running = null;
    else if (live && !page.running) this.#forgetWhenOver(live);
    this.failed = this.running ? null : page.failed;
    this.isLoaded = true;
    this.emit("messages");
    this.emit("status");
  }

  /** The page was read while a turn ran that has ended since: it has no answer yet, and the one in sight would vanish. */
  #isOlderThanAnEnd(page) {
    const stream = page.running && this.streams.get(page.running.requestId);
    if (!stream?.isDone || stream.isLookedAfter) return false;
    stream.isLookedAfter = true; // whatever the next page says is taken
    return true;
  }

  /** The state of a summary, where no frame has reported it yet. Its end may have come before the socket opened: read again. */
  #takeCompacting(state) {
    this.compacting = state;
    clearTimeout(this.compactionTimer);
    if (state) {
      this.compactionTimer = setTimeout(
        () => this.isClosed || this.isCompactionReported || this.refresh(),
        COMPACTION_LOOK,
      );
    }
  }

  /** The page was read while the turn ran: its answer comes by the stream, what has come of it stays in sight. */
  #adopt(page) {
    const { requestId, turnId } = page.running;
    const stream = this.stream(requestId, turnId);
    if (stream.isDone) return null;
    if (stream.lastSeq < 0) stream.expect(page.running); // later on its chunks say it, and a page may come too late
    if (stream.message && !page.messages.some((item) => item.id === stream.message.id)) {
      page.messages.push(stream.message);
    }
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

  #noteSession(id) {
    if (id === this.sessionId) return;
    const isSwitch = this.isLoaded;
    if (isSwitch) this.isCompactionReported = false; // frames are about the shown history: none came for this one yet
    this.sessionId = id;
    this.fresh = new Freshness();
    this.socket = null; // of a conversation that can continue
    this.instance.sessionId = id;
    if (this.place && !this.place.isForeign) this.#leavePlace(); // it was a place in the former one
    if (isSwitch) this.emit("switched");
  }

  /** What the newest page adds while one reads elsewhere: whether a turn runs. */
  #noteRunning(page) {
    const stream = page.running && this.stream(page.running.requestId, page.running.turnId);
    this.running = stream && !stream.isDone ? stream : null;
    if (this.running && stream.lastSeq < 0) stream.expect(page.running);
    if (!this.isCompactionReported) this.#takeCompacting(page.compacting);
    this.failed = this.running ? null : page.failed;
    this.emit("status");
  }

  // --- reading elsewhere ----------------------------------------------------------------------------------------------

  #read(wanted, sessionId = this.place?.isForeign ? this.place.sessionId : "") {
    return this.api.messages(this.instance.id, { ...wanted, sessionId });
  }

  /** Load the page before the first message. */
  async loadOlder() {
    if (!this.hasMore || this.isLoadingOlder || !this.messages.length) return;
    this.isLoadingOlder = true;
    const { place } = this;
    try {
      const page = fromPage(await this.#read({ before: this.messages[0].id }));
      if (place !== this.place) return; // another place by now
      const known = new Set(this.messages.map((item) => item.id));
      this.messages.unshift(...page.messages.filter((item) => !known.has(item.id)));
      this.hasMore = page.hasMore;
      if (this.messages.length > MOST) this.#forgetNewer();
      this.emit("messages", { isPrepend: true });
    } finally {
      this.isLoadingOlder = false;
    }
  }

  /** Load the page after the last message, where the newest are not what is shown. */
  async loadNewer() {
    if (!this.hasNewer || this.isLoadingNewer || !this.messages.length) return;
    this.isLoadingNewer = true;
    const { place } = this;
    try {
      const page = fromPage(await this.#read({ after: this.messages.at(-1).id }));
      if (place !== this.place) return;
      const known = new Set(this.messages.map((item) => item.id));
      this.messages.push(...page.messages.filter((item) => !known.has(item.id)));
      this.hasNewer = page.hasNewer;
      if (this.messages.length > MOST) this.forgetOlder(MOST - DROPPED);
      this.emit("messages", { isAppend: true });
      if (!this.hasNewer && !place.isOther) this.backToNewest();
    } finally {
      this.isLoadingNewer = false;
    }
  }

  /** Read around a message, in whatever branch and history it is. Resolves when it is among the messages. */
  async openAt(messageId, sessionId = "") {
    const isForeign = Boolean(sessionId) && sessionId !== this.sessionId;
    if (!isForeign && !this.place?.isForeign && this.isLoaded && this.messages.some((item) => item.id === messageId)) {
      return;
    }
    const raw = await this.#read({ around: messageId }, sessionId || this.sessionId || "");
    const page = fromPage(raw);
    const isOther = isForeign || page.leafId !== page.shownLeafId;
    this.place = isOther || page.hasNewer
      ? { sessionId: page.sessionId, leafId: page.leafId, isOther, isForeign }
      : null;
    this.hasNewer = page.hasNewer;
    if (this.place) {
      this.messages = page.messages;
      this.hasMore = page.hasMore;
      this.queued = [];
      this.isLoaded = true;
    } else this.takePage(raw);
    this.emit("messages", { isElsewhere: true });
    this.emit("place");
    if (this.place) this.emit("status");
  }

  /** Read what stands around a message again: it has got another version, and what is shown stays. */
  async refreshAround(messageId) {
    if (!this.place) return this.refresh();
    refreshKnown(this, fromPage(await this.#read({ around: messageId })));
    this.emit("messages");
  }

  /** Back to the newest page of the path that the conversation shows. */
  async backToNewest() {
    if (!this.place) return;
    this.#leavePlace();
    await this.refresh();
  }

  /** Make what is read what the conversation shows: choose its history and its branch. */
  async goOnHere() {
    const { place } = this;
    if (!place) return;
    if (place.isForeign) await this.api.switchSession(this.instance.id, place.sessionId);
    else if (place.isOther) await this.api.selectLeaf(this.instance.id, place.leafId);
    await this.backToNewest();
  }

  /** The end of the branch that is read, whichever it is. */
  async toEnd() {
    const { place } = this;
    if (place?.isOther) await this.openAt(place.leafId, place.sessionId);
    else await this.backToNewest();
  }

  /** What is sent next is about a message that is in sight: its branch is the one to show, its end not known yet. */
  leavePlace() {
    if (this.place) this.#leavePlace();
  }

  #leavePlace() {
    this.place = null;
    this.hasNewer = false;
    this.emit("place", { isBack: true });
  }

  #forgetNewer() {
    this.place ??= { sessionId: this.sessionId, leafId: this.leafId, isOther: false, isForeign: false };
    this.messages.splice(MOST - DROPPED);
    this.hasNewer = true;
    this.queued = [];
    this.emit("place");
  }

  /** Keep the newest messages only; the others are a page away. */
  forgetOlder(kept) {
    this.messages.splice(0, this.messages.length - kept);
    this.hasMore = true;
  }

  /** Show a branch as it will be after an edit or a regenerate: this message and all that follows go out of sight. */
  cutBefore(messageId) {
    const at = this.messages.findIndex((item) => item.id === messageId);
    if (at >= 0) this.messages.splice(at);
    this.failed = null;
    this.emit("messages");
  }
}
