// What a view of the panel shows is read from the server, and read again when the conversation has changed.

import { effect, untracked } from "@preact/signals-core";
import { useEffect, useState } from "preact/hooks";
import { Due } from "../lib/busy.ts";
import { Store } from "../lib/store.ts";
import type { Conversation } from "../store/conversation.ts";
import { useApp } from "./context.ts";

const PAUSE_MS = 250; // what else changes meanwhile is read with it

/** Something that is read: its value once there is one, and why the last attempt failed. */
export class Reading<Value> extends Store {
  value: Value | null = null;
  error = "";
  #read: (signal: AbortSignal) => Promise<Value>;
  #abort: AbortController | null = null;
  readonly #due = new Due();
  #look = 0;

  constructor(read: (signal: AbortSignal) => Promise<Value>) {
    super();
    this.#read = read;
  }

  /** Read now. An earlier attempt that is under way does not count any more. Never rejects. */
  async again(): Promise<void> {
    this.#wait();
    this.#abort?.abort();
    const { signal } = this.#abort = new AbortController();
    try {
      const value = await this.#read(signal);
      if (signal.aborted) return;
      Object.assign(this, { value, error: "" });
    } catch (error) {
      if (signal.aborted) return;
      this.error = (error as Error).message;
    }
    this.changed();
  }

  soon(pause = PAUSE_MS): void {
    this.#wait();
    this.#due.set(() => this.again(), pause);
  }

  /** Look again after a while, and so on for as long as the view is shown: a page at rest does that. */
  watch(pause: number): void {
    this.#wait();
    this.#look = setTimeout(() => this.again(), pause);
  }

  #wait(): void {
    this.#due.clear();
    clearTimeout(this.#look);
  }

  /** Take a value that is known without reading it. */
  set(value: Value): void {
    this.value = value;
    this.changed();
  }

  stop(): void {
    this.#wait();
    this.#abort?.abort();
  }
}

/** Hear of each change of a store after now. */
function changesOf(store: Store, listener: () => void): () => void {
  const { currentVersion } = store;
  return effect(() => {
    if (store.version !== currentVersion) untracked(listener);
  });
}

/** Read while the view is shown: at once, after each answer, and after the line was lost; `isBranchDependent`: for each branch. */
export function useReading<Value>(
  conversation: Conversation,
  read: (signal: AbortSignal) => Promise<Value>,
  { isBranchDependent = false } = {},
): Reading<Value> {
  const { summaries, undoing } = useApp();
  const [reading] = useState(() => new Reading(read));
  useEffect(() => {
    const { events } = conversation;
    let { leafId } = conversation;
    const soon = () => reading.soon();
    const off = [
      events.on("spoken-end", soon),
      events.on("reconnected", soon),
      changesOf(summaries, soon),
      changesOf(undoing, soon),
      changesOf(conversation, () => {
        if (!isBranchDependent || conversation.leafId === leafId) return;
        leafId = conversation.leafId;
        soon();
      }),
    ];
    reading.again();
    return () => {
      off.forEach((stop) => stop());
      reading.stop();
    };
  }, []);
  void reading.version;
  return reading;
}
