// Messages on their way: kept in this browser until the server has accepted them, sent again with the same ids, so that
// a repeated send is one turn. What is in here is optimistic and looks it.

import { Due } from "../lib/busy.ts";
import { EventStore } from "../lib/event_store.ts";
import { recall, remember } from "../lib/storage.ts";
import { type ApiError, isTemporary, limitOf, messageOf } from "../net/api.ts";
import type { OutboxEntry } from "./types.ts";

const HASTY_WAIT = 4_000;
const MARGIN = 500; // after the end of a limit: clocks differ
const RETRY_STEPS = [1000, 2000, 5000, 10_000, 20_000];

/** What is written down of an entry. */
export type KeptEntry = Pick<OutboxEntry, "requestId" | "body" | "shown">;

/** Writes down what a message has become on its way. */
export type Rewrite = (content: Pick<KeptEntry, "body" | "shown">) => void;

/** Bring one entry to the server. Throws an `ApiError`. */
export type Deliver = (entry: OutboxEntry, signal: AbortSignal, rewrite: Rewrite) => Promise<void>;

/** Where the entries of a conversation are kept; `path` as `pathOf` gives it. */
const keyOf = (path: string) => `outbox.${path}`;

/** What of a conversation waits to be sent. */
export const keptEntries = (path: string): KeptEntry[] => recall<KeptEntry[]>(keyOf(path), []);

/** "change" is for listeners that are no views: it comes at once, for each change. */
export class Outbox extends EventStore<{ change: undefined }> {
  readonly #key: string;
  readonly #deliver: Deliver;
  readonly #due = new Due();
  #busy = false;
  #closed = false;
  #sending = new AbortController();
  #isHasty = false;
  readonly #wake = () => void this.flush();

  /** In the order in which they are sent. An entry that changes is another object. */
  readonly entries: readonly OutboxEntry[];

  /** `path` names the conversation. */
  constructor(path: string, deliver: Deliver) {
    super();
    this.#key = keyOf(path);
    this.#deliver = deliver;
    this.entries = keptEntries(path).map((entry) => ({ ...entry, state: "waiting", error: "", tries: 0, limit: null }));
    addEventListener("online", this.#wake);
    if (this.entries.length) this.#due.set(this.#wake, 0);
  }

  add(entry: KeptEntry): void {
    this.#put([...this.entries, { ...entry, state: "sending", error: "", tries: 0, limit: null }]);
    this.flush();
  }

  remove(requestId: string): void {
    this.#put(this.entries.filter((entry) => entry.requestId !== requestId));
  }

  /**
   * Forget what the conversation shows: it was accepted, with or without a frame. And what a page read after its acceptance
   * lacks: another version has taken its place meanwhile. `readAt`: when that page was asked for.
   */
  settle(knownIds: ReadonlySet<string>, readAt = 0): void {
    const isSettled = ({ shown, state, acceptedAt = Infinity }: OutboxEntry) =>
      shown ? knownIds.has(shown.id) || acceptedAt < readAt : state === "accepted";
    const left = this.entries.filter((entry) => !isSettled(entry));
    if (left.length < this.entries.length) this.#put(left);
  }

  retry(requestId: string): void {
    this.#change(requestId, { state: "waiting", tries: 0, error: "", limit: null });
    this.flush();
  }

  /** Ask again for what is on its way: its line may be dead. It has the same ids, so that it is accepted once. */
  renew(): void {
    this.#isHasty = true; // the browser may have further dead connections, and takes one after the other
    this.#sending.abort();
  }

  /** Send what waits, in order, one at a time. */
  async flush(): Promise<void> {
    if (this.#busy || this.#closed) return;
    this.#busy = true;
    this.#due.clear();
    try {
      for (const { requestId } of this.entries) {
        const entry = this.#find(requestId); // as it is by now
        if (entry?.state !== "sending" && entry?.state !== "waiting") continue;
        if (!(await this.#send(entry))) return this.#holdBack();
      }
    } finally {
      this.#busy = false;
    }
    if (this.entries.some((entry) => entry.state === "sending")) this.flush();
  }

  close(): void {
    this.#closed = true;
    this.#due.clear();
    removeEventListener("online", this.#wake);
  }

  /** What stands behind an entry that waits is sent after it, so it waits too: asking again at once would never end. */
  #holdBack(): void {
    this.#put(this.entries.map((entry) => (entry.state === "sending" ? { ...entry, state: "waiting" } : entry)));
  }

  async #send({ requestId, tries }: OutboxEntry): Promise<boolean> {
    this.#change(requestId, { state: "sending" });
    const entry = this.#find(requestId);
    if (!entry) return true;
    const sending = this.#sending = new AbortController();
    const { signal } = sending;
    const tooLong = this.#isHasty ? setTimeout(() => sending.abort(), HASTY_WAIT) : 0;
    try {
      await this.#deliver(entry, signal, (content) => this.#change(requestId, content));
      this.#isHasty = false;
      this.#change(requestId, { state: "accepted", acceptedAt: performance.now() });
      return true;
    } catch (error) {
      if (signal.aborted && !this.#closed) return await this.#send(entry);
      const limit = limitOf(error);
      if (limit) limit.isShown = true; // at the message
      if (!isTemporary(error)) {
        this.#change(requestId, { state: "refused", error: messageOf(error), limit });
        return true;
      }
      if (limit) {
        this.#change(requestId, { state: "waiting", error: "", limit });
        if (!this.#closed) this.#due.set(this.#wake, Math.max(MARGIN, limit.endsAt - Date.now() + MARGIN));
        return false;
      }
      const isLine = (error as ApiError).kind === "offline";
      this.#change(requestId, { state: "waiting", error: isLine ? "" : messageOf(error), tries: tries + 1, limit });
      if (!this.#closed) this.#due.set(this.#wake, RETRY_STEPS[Math.min(tries, RETRY_STEPS.length - 1)]);
      return false;
    } finally {
      clearTimeout(tooLong);
    }
  }

  #find(requestId: string): OutboxEntry | undefined {
    return this.entries.find((entry) => entry.requestId === requestId);
  }

  #change(requestId: string, change: Partial<OutboxEntry>): void {
    this.#put(this.entries.map((entry) => (entry.requestId === requestId ? { ...entry, ...change } : entry)));
  }

  #put(entries: readonly OutboxEntry[]): void {
    Object.assign(this, { entries });
    const kept: KeptEntry[] = entries.filter(({ state }) => state !== "accepted").map(({ requestId, body, shown }) => ({
      requestId,
      body,
      shown,
    }));
    remember(this.#key, kept.length ? kept : null);
    this.changed();
    this.emit("change");
  }
}
