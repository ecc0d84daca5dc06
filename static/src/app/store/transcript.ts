// The list of messages of one conversation as the server has it: read by pages, with the turn that runs. No DOM in here.

import { batch } from "@preact/signals-core";
import { Due } from "../lib/busy.ts";
import { newId } from "../lib/ids.ts";
import { type Api, isTemporary } from "../net/api.ts";
import type { AgentSocket } from "../net/socket.ts";
import { Freshness } from "./freshness.ts";
import type { RawPage } from "../net/types.ts";
import { type Compacting, fromPage, mergeNewest, type Page, refreshKnown, type RunningTurn } from "./path.ts";
import { ConversationState } from "./state.ts";
import type { TurnStream } from "./stream.ts";
import type { Instance, ReadingPlace } from "./types.ts";

const REFRESH_PAUSE = 60;
const AGAIN_STEPS = [1_000, 2_000, 5_000, 10_000]; // after a read that did not come
const MOST = 600; // messages in the page while one reads on, in either direction
const DROPPED = 200;
const COMPACTION_LOOK = 3_000;
const OVER_LOOK = 1_500;

/** What of the API a transcript needs. */
export type TranscriptApi = Pick<Api, "messages" | "selectLeaf" | "switchSession" | "cancelTurn">;

/** What of the socket a conversation needs. */
export type Line = Pick<AgentSocket, "on" | "connect" | "send" | "close" | "state">;

export class Transcript extends ConversationState {
  protected readonly api: TranscriptApi;
  protected readonly fresh = new Freshness();
  /** Of a conversation that can continue. */
  protected line: Line | null = null;
  /** The last question whether there is a stream to follow. */
  protected probe = "";
  #refreshing: Promise<void> | null = null;
  #refreshAgain = false;
  #failures = 0; // reads in a row
  readonly #refreshDue = new Due();
  readonly #compactionDue = new Due();
  #isClosed = false;

  /** `page`: the newest one, where the document has brought it along. */
  constructor(api: TranscriptApi, instance: Instance, page: RawPage | null = null) {
    super(instance);
    this.api = api;
    if (page) this.takePage(page);
  }

  /** Whether it is not shown any more: what comes late changes nothing. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  close(): void {
    this.#isClosed = true;
    this.#refreshDue.clear();
    this.#compactionDue.clear();
    this.flushTouched();
  }

  /** Read the newest page again and settle on it. Calls while one runs are folded into one more. */
  refresh(): Promise<void> {
    this.#refreshDue.clear();
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

  /** Ask whether there is a stream to follow. */
  protected askToResume(): void {
    this.probe = newId("prb");
    this.line?.send({ type: "cf_agent_stream_resume_request", probeId: this.probe });
  }

  refreshSoon(pause = REFRESH_PAUSE): void {
    this.#refreshDue.set(() => this.refresh(), pause);
  }

  async #readPage(): Promise<void> {
    if (!this.instance.id) return;
    const asked = performance.now();
    try {
      const page = await this.api.messages(this.instance.id, { limit: 50 });
      if (this.isClosed) return;
      this.#failures = 0;
      if (this.loadError) this.put({ loadError: null });
      // It may lack what frames have added since, and would remove it from view.
      if (this.fresh.isTooOld(page.session_id === this.sessionId ? page.version : undefined, asked)) {
        return this.refreshSoon();
      }
      this.put({ readAt: asked });
      this.takePage(page);
    } catch (error) {
      this.put({ loadError: error instanceof Error ? error : new Error(String(error)) });
      if (isTemporary(error) && !this.isClosed) {
        this.refreshSoon(AGAIN_STEPS[Math.min(this.#failures++, AGAIN_STEPS.length - 1)]);
      }
    }
  }

  // --- settling on a page -------------------------------------------------------------------------------------------

  /** Show the newest page. */
  takePage(raw: RawPage): void {
    const page = fromPage(raw);
    if (this.#isOlderThanAnEnd(page)) return this.refreshSoon();
    batch(() => {
      this.#noteSession(page.sessionId);
      this.fresh.note(page.version);
      if (!this.isCompactionReported) this.#takeCompacting(page.compacting);
      if (this.place) this.#noteRunning(page);
      else this.#settle(page);
    });
  }

  #settle(page: Page): void {
    const live = this.running;
    const adopted = page.running && this.#adopt(page.running);
    // A page that was read before the turn existed lacks the answer that is streaming.
    const early = !page.running && live && !live.isDone && !live.wasMissing ? live : null;
    const merge = mergeNewest(this, page, (adopted ?? early)?.message ?? null);
    const running = adopted ?? this.#stillRunning(live, page);
    this.show(merge, { running, failed: running ? null : page.failed, isLoaded: true });
  }

  /** The page was read while a turn ran that has ended since: it has no answer yet, and the one in sight would vanish. */
  #isOlderThanAnEnd(page: Page): boolean {
    const stream = page.running && this.streams.get(page.running.requestId);
    if (!stream?.isDone || stream.isLookedAfter) return false;
    stream.isLookedAfter = true; // whatever the next page says is taken
    return true;
  }

  /** The state of a summary, where no frame has reported it yet. Its end may have come before the socket opened: read again. */
  #takeCompacting(compacting: Compacting): void {
    this.put({ compacting });
    this.#compactionDue.clear();
    if (compacting && !this.isClosed) {
      this.#compactionDue.set(() => void (this.isCompactionReported || this.refresh()), COMPACTION_LOOK);
    }
  }

  /** The page was read while the turn ran: its answer comes by the stream, what has come of it stays in sight. */
  #adopt(running: RunningTurn): TurnStream | null {
    const stream = this.stream(running.requestId, running.turnId);
    if (stream.isDone) {
      this.askToResume(); // it had ended, and was resumed
      return null;
    }
    if (stream.lastSeq < 0) stream.expect(running); // later on its chunks say it, and a page may come too late
    if (stream.message && !stream.message.isLive) {
      stream.message.isLive = true;
      this.touch(stream.message.id);
    }
    return stream;
  }

  /** What runs on where the page tells of no turn, or of one that has ended. */
  #stillRunning(live: TurnStream | null, page: Page): TurnStream | null {
    if (!live || live.isDone || this.line?.state !== "open") return null;
    return page.running || this.#mayRun(live) ? live : null;
  }

  /** The page says that nothing runs although the line has not said "done" yet: the page is the truth, it is only early. */
  #mayRun(stream: TurnStream): boolean {
    if (stream.phase === "waiting" && !stream.turnId) return true; // accepted a moment ago, after the page was read
    setTimeout(() => {
      if (this.running === stream && !stream.isDone && !this.isClosed) this.refresh();
    }, OVER_LOOK);
    if (stream.wasMissing) stream.isDone = true;
    stream.wasMissing = true;
    return !stream.isDone;
  }

  #noteSession(id: string | null): void {
    if (id === this.sessionId) return;
    const isSwitch = this.isLoaded;
    if (isSwitch) this.forgetCompactionReport(); // frames are about the shown history: none came for this one yet
    if (this.sessionId) this.put({ running: null }); // it belongs to the former one
    this.fresh.restart();
    this.put({ sessionId: id });
    this.update({ sessionId: id });
    if (this.place && !this.place.isForeign) this.leavePlace(); // it was a place in the former one
    if (isSwitch) this.emit("switched");
  }

  /** What the newest page adds while one reads elsewhere: whether a turn runs. */
  #noteRunning(page: Page): void {
    const stream = page.running && this.stream(page.running.requestId, page.running.turnId);
    const running = stream && !stream.isDone ? stream : null;
    if (page.running && running && running.lastSeq < 0) running.expect(page.running);
    this.put({ running, failed: running ? null : page.failed });
  }

  // --- reading elsewhere ----------------------------------------------------------------------------------------------

  #read(wanted: { before?: string; after?: string; around?: string }, sessionId = this.#foreignSession) {
    return this.api.messages(this.instance.id, { ...wanted, sessionId });
  }

  get #foreignSession(): string {
    return (this.place?.isForeign && this.place.sessionId) || "";
  }

  /** Load the page before the first message. */
  async loadOlder(): Promise<void> {
    if (!this.hasMore || this.isLoadingOlder || !this.messages.length) return;
    const { place } = this;
    this.put({ isLoadingOlder: true });
    try {
      const page = fromPage(await this.#read({ before: this.messages[0].id }));
      if (place !== this.place) return; // another place by now
      this.emit("moved", { how: "prepend" });
      batch(() => {
        this.put({ messages: [...this.#unknown(page), ...this.messages], hasMore: page.hasMore });
        if (this.messages.length > MOST) this.#forgetNewer();
      });
    } finally {
      this.put({ isLoadingOlder: false });
    }
  }

  /** Load the page after the last message, where the newest are not what is shown. */
  async loadNewer(): Promise<void> {
    const last = this.messages.at(-1);
    if (!this.hasNewer || this.isLoadingNewer || !last) return;
    const { place } = this;
    this.put({ isLoadingNewer: true });
    try {
      const page = fromPage(await this.#read({ after: last.id }));
      if (place !== this.place) return;
      this.emit("moved", { how: "append" });
      batch(() => {
        this.put({ messages: [...this.messages, ...this.#unknown(page)], hasNewer: page.hasNewer });
        if (this.messages.length > MOST) this.forgetOlder(MOST - DROPPED);
      });
      if (!this.hasNewer && !place?.isOther) this.backToNewest();
    } finally {
      this.put({ isLoadingNewer: false });
    }
  }

  #unknown(page: Page) {
    const known = new Set(this.messages.map((item) => item.id));
    return page.messages.filter((item) => !known.has(item.id));
  }

  /** Read around a message, in whatever branch and history it is. Resolves when it is among the messages. */
  async openAt(messageId: string, sessionId = ""): Promise<void> {
    const isForeign = Boolean(sessionId) && sessionId !== this.sessionId;
    if (!isForeign && !this.place?.isForeign && this.isLoaded && this.messages.some((item) => item.id === messageId)) {
      return;
    }
    const raw = await this.#read({ around: messageId }, sessionId || this.sessionId || "");
    const page = fromPage(raw);
    const { hasNewer, leafId } = page;
    const isOther = isForeign || leafId !== page.shownLeafId;
    const place: ReadingPlace | null = isOther || hasNewer
      ? { sessionId: page.sessionId, leafId, isOther, isForeign }
      : null;
    this.emit("moved", { how: "elsewhere" });
    batch(() => {
      this.put({ place, hasNewer });
      if (place) this.put({ messages: page.messages, hasMore: page.hasMore, queued: [], isLoaded: true });
      else this.takePage(raw);
    });
  }

  /** Read what stands around a message again: it has got another version, and what is shown stays. */
  async refreshAround(messageId: string): Promise<void> {
    if (!this.place) return this.refresh();
    this.apply(refreshKnown(this.messages, fromPage(await this.#read({ around: messageId }))));
  }

  /** Back to the newest page of the path that the conversation shows. */
  async backToNewest(): Promise<void> {
    if (!this.place) return;
    this.leavePlace();
    await this.refresh();
  }

  /** Make what is read what the conversation shows: choose its history and its branch. */
  async goOnHere(): Promise<void> {
    const { place } = this;
    if (!place) return;
    if (place.isForeign && place.sessionId) await this.api.switchSession(this.instance.id, place.sessionId);
    else if (place.isOther && place.leafId) await this.api.selectLeaf(this.instance.id, place.leafId);
    await this.backToNewest();
  }

  /** The end of the branch that is read, whichever it is. */
  async toEnd(): Promise<void> {
    const { place } = this;
    if (place?.isOther && place.leafId) await this.openAt(place.leafId, place.sessionId ?? "");
    else await this.backToNewest();
  }

  /** What is sent next is about a message that is in sight: its branch is the one to show, its end not known yet. */
  leavePlace(): void {
    if (!this.place) return;
    this.emit("moved", { how: "back" });
    this.put({ place: null, hasNewer: false });
  }

  #forgetNewer(): void {
    const { sessionId, leafId } = this;
    const place = this.place ?? { sessionId, leafId, isOther: false, isForeign: false };
    this.put({ place, messages: this.messages.slice(0, MOST - DROPPED), hasNewer: true, queued: [] });
  }
}
