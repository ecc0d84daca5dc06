// Taking back what turns did, and bringing it back: what was undone here last. The verbs are loaded when they are used.

import { Store } from "../lib/store.ts";
import type { App } from "./app.ts";
import type { Instance } from "./types.ts";

export class Undoing extends Store {
  /** The undo of the shown conversation that can be brought back; null where there is none. */
  last: Instance["undone"] = null;
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

  /** A conversation is shown: the server knows what was undone there. */
  show(instance: Instance): void {
    this.last = instance.undone ?? null;
    this.changed();
  }

  /** The conversation went on. */
  forget(): void {
    if (this.last) this.keep(null);
  }

  keep(last: Instance["undone"]): void {
    this.last = last;
    this.#app.list.patch(this.#app.conversation.instance.id, { undone: last });
    this.changed();
  }

  async #verbs() {
    try {
      return await import("./undo_verbs.ts");
    } catch (error) {
      this.#app.notices.fail(error); // a page without a network
    }
  }
}
