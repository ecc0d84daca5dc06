// What views read of one conversation: its messages and how it stands. Fields are changed by its own methods only, and each
// change is announced: of the whole by the store's version, of one message by its revision. No DOM in here.

import { batch, type Signal, signal } from "@preact/signals-core";
import { ANSWER, Due } from "../lib/busy.ts";
import { EventStore } from "../lib/event_store.ts";
import type { ConversationFrame, Outcome, RunFrame, SessionFrame } from "../net/frames.ts";
import type { Delegated } from "./delegated.ts";
import type { Compacting, Merge, Update } from "./path.ts";
import { TurnStream } from "./stream.ts";
import type { Failure, Instance, Message, ReadingPlace } from "./types.ts";

const CHUNK_PAUSE = 40; // chunks come faster than eyes read

/** News of any conversation of the person; what is not said has not changed. */
export type Listed = Omit<ConversationFrame, "type">;

export interface ConversationEvents {
  /** The list is about to grow at its beginning or end, to show another place, or its newest page again. */
  moved: { how: "prepend" | "append" | "elsewhere" | "back" };
  /** Another history of the conversation is the current one. */
  switched: undefined;
  /** An answer has ended. */
  "spoken-end": { outcome: Outcome };
  listed: Listed;
  /** What changes from now on arrives: the server has put this line into its groups. */
  joined: undefined;
  /** The line is there again; what was sent meanwhile was missed. */
  reconnected: undefined;
  /** The servers whose tools it has, or what is known of them, have changed. */
  servers: undefined;
  /** A member was added, has another role, or is none any more. */
  people: undefined;
  /** A project of the person's was made, changed or removed. */
  projects: undefined;
  /** Another person has it open. */
  presence: { author: string; isTyping: boolean };
  session: SessionFrame;
  /** A summary failed: why. */
  "session-failed": string;
  /** Another agent works for the conversation. */
  run: RunFrame;
}

/** The fields that views read. */
export interface ConversationFields {
  readonly instance: Instance;
  readonly messages: readonly Message[];
  /** Messages that wait behind the turn that runs. */
  readonly queued: readonly Message[];
  readonly hasMore: boolean;
  readonly hasNewer: boolean;
  readonly leafId: string | null;
  /** Where one reads when it is not the newest page of the shown path. */
  readonly place: ReadingPlace | null;
  readonly sessionId: string | null;
  readonly failed: Failure | null;
  readonly running: TurnStream | null;
  readonly isRecovering: boolean;
  readonly isStopping: boolean;
  /** A summary of older messages is on its way. */
  readonly compacting: Compacting;
  readonly isLoaded: boolean;
  readonly loadError: Error | null;
  readonly isLoadingOlder: boolean;
  readonly isLoadingNewer: boolean;
  /** When the last page was asked for, as `performance.now()` has it. */
  readonly readAt: number;
}

export class ConversationState extends EventStore<ConversationEvents> implements ConversationFields {
  readonly instance: Instance;
  readonly messages: readonly Message[] = [];
  readonly queued: readonly Message[] = [];
  readonly hasMore: boolean = false;
  readonly hasNewer: boolean = false;
  readonly leafId: string | null = null;
  readonly place: ReadingPlace | null = null;
  readonly sessionId: string | null;
  readonly failed: Failure | null = null;
  readonly running: TurnStream | null = null;
  readonly isRecovering: boolean = false;
  readonly isStopping: boolean = false;
  readonly compacting: Compacting = "";
  readonly isLoaded: boolean;
  readonly loadError: Error | null = null;
  readonly isLoadingOlder: boolean = false;
  readonly isLoadingNewer: boolean = false;
  readonly readAt: number = 0;
  /** Agents that work for this conversation; null while there is none. */
  delegated: Delegated | null = null;

  readonly #streams = new Map<string, TurnStream>();
  readonly #revisions = new Map<string, Signal<number>>();
  readonly #touched = new Set<string>(); // by chunks, and not announced yet
  readonly #pause = new Due(ANSWER);

  constructor(instance: Instance) {
    super();
    this.instance = instance;
    this.sessionId = instance.sessionId ?? null;
    this.isLoaded = Boolean(instance.isNew); // there is nothing to load
  }

  /** The one way to change the fields. */
  protected put(change: Partial<ConversationFields>): void {
    Object.assign(this, change);
    this.changed();
  }

  /** The one way to change the instance. */
  update(change: Partial<Instance>): void {
    this.put({ instance: { ...this.instance, ...change } });
  }

  // --- messages -----------------------------------------------------------------------------------------------------

  /** Number of changes of one message. Reading it while drawing subscribes the view to this message alone. */
  revision(id: string): number {
    return this.#revisionOf(id).value;
  }

  /** A message has changed. */
  touch(id: string): void {
    this.#touched.delete(id);
    this.#bump(id);
  }

  /** A chunk has changed a message: one announcement covers all that come within 40 ms, and the last is never lost. */
  protected touchSoon(id: string): void {
    this.#touched.add(id);
    if (!this.#pause.isSet) this.#pause.set(() => this.flushTouched(), CHUNK_PAUSE);
  }

  /** Tell of what chunks have changed, now. */
  protected flushTouched(): void {
    this.#pause.clear();
    const ids = [...this.#touched];
    this.#touched.clear();
    batch(() => ids.forEach((id) => this.#bump(id)));
  }

  #bump(id: string): void {
    const revision = this.#revisionOf(id);
    revision.value = revision.peek() + 1;
  }

  /** Kept for messages that went out of sight too: they may come back while a view still reads theirs. */
  #revisionOf(id: string): Signal<number> {
    let revision = this.#revisions.get(id);
    if (!revision) this.#revisions.set(id, revision = signal(0));
    return revision;
  }

  /** Show what was merged. */
  protected show({ updates, ...list }: Merge, more: Partial<ConversationFields> = {}): void {
    batch(() => {
      this.apply(updates);
      this.put({ ...list, ...more });
    });
  }

  protected apply(updates: readonly Update[]): void {
    batch(() => {
      for (const { message, change } of updates) {
        Object.assign(message, change);
        this.#touched.delete(message.id);
        this.#bump(message.id);
      }
    });
  }

  /** Keep the newest messages only; the others are a page away. */
  forgetOlder(kept: number): void {
    if (this.messages.length > kept) this.put({ messages: this.messages.slice(-kept), hasMore: true });
  }

  /** Show a branch as it will be after an edit or a regenerate: this message and all that follows go out of sight. */
  cutBefore(messageId: string | undefined): void {
    const at = this.messages.findIndex((item) => item.id === messageId);
    this.put({ messages: at >= 0 ? this.messages.slice(0, at) : this.messages, failed: null });
  }

  // --- turns --------------------------------------------------------------------------------------------------------

  /** Turns that this tab knows, by their request. */
  get streams(): ReadonlyMap<string, TurnStream> {
    return this.#streams;
  }

  /** The stream of a request; `turnId` where it is known. */
  stream(requestId: string, turnId = ""): TurnStream {
    let stream = this.#streams.get(requestId);
    if (!stream) this.#streams.set(requestId, stream = new TurnStream(requestId));
    stream.turnId = turnId || stream.turnId;
    return stream;
  }

  /** Follow a request from its beginning, in the place of a stream that had ended. */
  protected streamAnew({ requestId, turnId }: TurnStream): TurnStream {
    this.#streams.delete(requestId);
    return this.stream(requestId, turnId);
  }

  protected run(stream: TurnStream): void {
    this.put({ running: stream, failed: null });
  }

  // --- summaries ----------------------------------------------------------------------------------------------------

  /** A frame reported it since the line opened: from then on frames count, pages come too late. */
  #isCompactionReported = false;

  get isCompactionReported(): boolean {
    return this.#isCompactionReported;
  }

  /** How a summary stands, as a frame or this person's own wish has it. */
  reportCompaction(compacting: Compacting): void {
    this.#isCompactionReported = true;
    this.put({ compacting });
  }

  /** From now on pages tell how a summary stands, until a frame does. */
  forgetCompactionReport(): void {
    this.#isCompactionReported = false;
  }
}
