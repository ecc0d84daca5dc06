// State that views follow. A store is a plain object with one version: each change is announced once, and every view that
// read the version is drawn again. Nothing in here knows of views or of the document.

import { signal } from "@preact/signals-core";
import { ANSWER, begin } from "./busy.ts";

/** Base of all stores. */
export class Store {
  readonly #version = signal(0);

  /** Number of changes so far. Reading it while drawing subscribes the view to this store. */
  get version(): number {
    return this.#version.value;
  }

  /** Announce a change: call it after the fields have their new values. */
  changed(): void {
    this.#version.value = this.#version.peek() + 1; // an effect that changes a store does not follow it by that
    begin(ANSWER)(); // a page at rest is at rest again when that is drawn
  }

  /** The version without subscribing to it. */
  get currentVersion(): number {
    return this.#version.peek();
  }
}

/** Follow a store in a view: returns the store, and draws the view again when it changes. */
export function follow<S extends Store>(store: S): S {
  void store.version;
  return store;
}
