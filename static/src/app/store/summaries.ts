// Summaries of one conversation: what the server has, what is being made, and the verbs. No DOM in here.

import { effect, untracked } from "@preact/signals-core";
import { t } from "../lib/i18n.ts";
import { Store } from "../lib/store.ts";
import { type Api, messageOf } from "../net/api.ts";
import type { SessionFrame } from "../net/frames.ts";
import type { Transcript } from "./transcript.ts";
import type { Compaction, Message } from "./types.ts";

/** What of the API summaries need. */
export type SummariesApi = Pick<Api, "compact" | "compactions" | "rewordCompaction" | "undoCompaction">;

/** Tell the person: for eyes too where `isNotice`. */
export type Say = (text: string, how?: { isNotice?: boolean }) => void;

/** What became of the summary that was asked for here: it was made, or there was nothing to summarise. */
export interface SummaryOutcome {
  kind: "done" | "nothing";
  /** Id of the summary; "" where it is not known. */
  compactionId: string;
}

export class Summaries extends Store {
  /** What stands for older messages. */
  readonly compactions: readonly Compaction[] = [];
  /** Why the last one failed; "" where it did not. How one stands that is being made: `compacting` of the conversation. */
  readonly error: string = "";
  /** The result to show where it was asked for, until something else goes on; null where there is none. */
  readonly outcome: SummaryOutcome | null = null;
  readonly #api: SummariesApi;
  readonly #conversation: Transcript;
  readonly #say: Say;
  readonly #off: (() => void)[];
  #asked: { instructions: string } | null = null;
  #known: ReadonlySet<string> | null = null; // ids of the messages that are shown

  constructor(api: SummariesApi, conversation: Transcript, say: Say) {
    super();
    this.#api = api;
    this.#conversation = conversation;
    this.#say = say;
    this.#off = [
      effect(() => {
        void conversation.version;
        untracked(() => {
          this.#onMessages(conversation.messages);
          if (conversation.running && this.outcome) this.#put({ outcome: null });
        });
      }),
      conversation.on("session", (frame) => this.#onPhase(frame)),
      conversation.on("session-failed", (text) => this.#onFailed(text)),
      conversation.on("switched", () => this.#onSwitched()),
      conversation.on("reconnected", () => {
        conversation.forgetCompactionReport(); // frames sent meanwhile were missed
        this.read();
      }),
    ];
    this.read();
  }

  /** The conversation is not shown any more. */
  close(): void {
    for (const off of this.#off) off();
  }

  /** Have older messages summarised. What it should keep may be said. Never rejects. */
  async ask(instructions: string): Promise<void> {
    const { id } = this.#conversation.instance;
    if (!id) return this.#tellNothing();
    this.#asked = { instructions };
    this.#put({ error: "", outcome: null });
    this.#conversation.reportCompaction("waiting");
    try {
      await this.#api.compact(id, instructions);
    } catch (error) {
      this.#onFailed(messageOf(error));
    }
  }

  again(): Promise<void> {
    return this.ask(this.#asked?.instructions ?? "");
  }

  dismiss(): void {
    this.#put({ error: "", outcome: null });
  }

  /** Both resolve to whether it is stored; a refusal is shown. */
  reword = (id: string, text: string): Promise<boolean> =>
    this.#change(this.#api.rewordCompaction(id, text), t("status.summary-changed"));
  undo = (id: string): Promise<boolean> => this.#change(this.#api.undoCompaction(id), t("status.summary-undone"));

  /** Read them from the server. Never rejects. */
  async read(): Promise<void> {
    const { id } = this.#conversation.instance;
    if (!id) return;
    try {
      const compactions = await this.#api.compactions(id);
      if (!this.#conversation.isClosed) this.#put({ compactions });
    } catch {
      // The lines stay as they are; the next change of the list reads them again.
    }
  }

  async #change(request: Promise<unknown>, done: string): Promise<boolean> {
    try {
      await request;
    } catch (error) {
      this.#say(messageOf(error), { isNotice: true });
      return false;
    }
    await this.read();
    this.#say(done);
    return true;
  }

  /** Another list has taken the place of the one that was shown, as after a clear: it has summaries of its own. */
  #onMessages(messages: readonly Message[]): void {
    const known = this.#known;
    if (!known && !messages.length) return;
    this.#known = new Set(messages.map((message) => message.id));
    const isOther = known && messages.length > 0 && !messages.some((message) => known.has(message.id));
    if (isOther) this.read();
  }

  #onSwitched(): void {
    this.#known = null;
    this.read();
  }

  #onPhase({ phase, compacted }: SessionFrame): void {
    const { compacting } = this.#conversation;
    if (phase === "idle" && !compacted && compacting !== "running") return this.#onIdle();
    if (phase === "compacting") {
      this.#put({ error: "" });
      return this.#conversation.reportCompaction("running");
    }
    const wasAsked = this.#asked !== null && compacting !== "" && !this.error;
    if (wasAsked && !compacted) this.#tellNothing();
    if (compacted) this.#say(t("status.summarised"));
    if (!this.error) this.#asked = null;
    this.#conversation.reportCompaction("");
    this.#readEnd(wasAsked && Boolean(compacted));
  }

  #tellNothing(): void {
    this.#say(t("status.nothing-to-summarise"));
    this.#put({ outcome: { kind: "nothing", compactionId: "" } });
  }

  async #readEnd(isOurs: boolean): Promise<void> {
    await this.read();
    if (!isOurs || this.#conversation.isClosed) return;
    const newest = [...this.compactions].sort((one, other) => one.created_at.localeCompare(other.created_at)).at(-1);
    this.#put({ outcome: { kind: "done", compactionId: newest?.id ?? "" } });
  }

  /** Context usage after a turn, a changed summary, or an end whose beginning was missed: read from the server. */
  #onIdle(): void {
    if (this.#conversation.compacting) {
      this.#conversation.forgetCompactionReport();
      this.#conversation.refreshSoon();
    }
    if (this.compactions.length) this.read();
  }

  #onFailed(text: string): void {
    this.#say(t("status.summarising-failed"));
    this.#put({ error: text || t("status.no-reason") });
    this.#conversation.reportCompaction("");
  }

  #put(change: Partial<Pick<Summaries, "compactions" | "error" | "outcome">>): void {
    Object.assign(this, change);
    this.changed();
  }
}
