// Limits that were reached: any refusal of this kind is kept here, unless the part of the page that met it shows it itself.

import { Store } from "../lib/store.ts";
import type { Limit } from "./types.ts";

const AFTERGLOW_MS = 4_000; // of one that has ended: "now" is to be seen

export class Limits extends Store {
  /** One for each text, the newest last. */
  items: readonly Limit[] = [];
  readonly #known = new Map<string, Limit>();

  constructor() {
    super();
    // What has asked handles the error first, and says whether it shows it.
    addEventListener("limit", (event) => setTimeout(() => this.#take((event as CustomEvent<Limit>).detail)));
  }

  /** The limit that an error with this text was about: who shows the error shows the limit in its place, and closes it here. */
  of = (text: string): Limit | undefined => this.#known.get(text);

  close(limit: Limit): void {
    if (!this.items.includes(limit)) return;
    this.items = this.items.filter((item) => item !== limit);
    this.changed();
  }

  #take(limit: Limit): void {
    if (limit.isShown) return;
    this.#known.set(limit.text, limit);
    this.items = [...this.items.filter(({ text }) => text !== limit.text), limit];
    this.changed();
    if (limit.passes) setTimeout(() => this.close(limit), limit.endsAt - Date.now() + AFTERGLOW_MS);
  }
}
