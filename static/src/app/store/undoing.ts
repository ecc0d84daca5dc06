// Taking back what turns did, and bringing it back: what was undone here last. The verbs are loaded when they are used.

import { Store } from "../lib/store.ts";
import type { Revert } from "../net/undo_api.ts";
import type { App } from "./app.ts";

export class Undoing extends Store {
  /** The undo that can be brought back, as far as it was made in this tab; null where there is none. */
  last: Revert | null = null;
  readonly #app: App;

  constructor(app: App) {
    super();
    this.#app = app;
  }

  /** Show what an undo of a turn would do, and do it once the person has decided. "": the last one. */
  async ask(turnId = ""): Promise<void> {
    await (await this.#verbs())?.askUndo(this.#app, turnId);
  }

  /** Bring back what was undone last. */
  async redo(): Promise<void> {
    await (await this.#verbs())?.redo(this.#app);
  }

  /** Another conversation is shown, or this one went on. */
  forget(): void {
    if (this.last) this.keep(null);
  }

  keep(last: Revert | null): void {
    this.last = last;
    this.changed();
  }

  async #verbs() {
    try {
      return await import("../ui/later.ts");
    } catch (error) {
      this.#app.notices.fail(error); // a page without a network
    }
  }
}
