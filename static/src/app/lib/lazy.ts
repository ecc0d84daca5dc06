// A part of the page that comes when it is first needed. Until then callers do without it.

import { pending } from "./busy.ts";

/** `value` is null until it has arrived. A failed load is tried again when it is next asked for, not before a minute has passed. */
export class Lazy<T> {
  value: T | null = null;
  #load: () => Promise<T>;
  #pending: Promise<T | null> | null = null;
  #failedAt = -Infinity;

  constructor(load: () => Promise<T>) {
    this.#load = load;
  }

  /** Resolves to the value, or to null where it could not be loaded. */
  get(): Promise<T | null> {
    if (this.value === null && performance.now() - this.#failedAt < 60_000) return Promise.resolve(null);
    return this.#pending ??= this.#begin();
  }

  async #begin(): Promise<T | null> {
    try {
      this.value = await pending(this.#load());
    } catch {
      this.#failedAt = performance.now(); // offline, or a newer version has been deployed
      this.#pending = null;
    }
    return this.value;
  }
}
