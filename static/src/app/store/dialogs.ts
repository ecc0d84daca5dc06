// Questions to the person, one at a time. Who asks waits for the answer; the view of a dialog is loaded when it is asked for.

import type { ComponentType } from "preact";
import { pending } from "../lib/busy.ts";
import { Store } from "../lib/store.ts";

/** What each dialog gets besides its own properties: close with an answer, or with null where there is none. */
export interface DialogProps<Answer> {
  close: (answer: Answer | null) => void;
}

/** A dialog that is open. */
export interface OpenDialog {
  id: number;
  view: ComponentType<Record<string, unknown>>;
  props: Record<string, unknown>;
}

type View<Props, Answer> = ComponentType<Props & DialogProps<Answer>>;

/** The open dialogs, the topmost last. */
export class Dialogs extends Store {
  open: readonly OpenDialog[] = [];
  #made = 0;

  /** Ask, and resolve to the answer; null where the person gave none. */
  async ask<Props, Answer>(load: () => Promise<View<Props, Answer>>, props: Props): Promise<Answer | null> {
    const view = await pending(load());
    return await new Promise((resolve) => {
      const id = ++this.#made;
      const close = (answer: Answer | null) => {
        this.open = this.open.filter((dialog) => dialog.id !== id);
        this.changed();
        resolve(answer);
      };
      const dialog = { id, view, props: { ...props, close } } as unknown as OpenDialog;
      this.open = [...this.open, dialog];
      this.changed();
    });
  }
}
