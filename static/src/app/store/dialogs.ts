// Questions to the person, one at a time, by name (`dialog_kinds.ts`). Who asks waits for the answer; the views are loaded with
// the first question, by a function that the page is given where it begins.

import type { ComponentType } from "preact";
import { pending } from "../lib/busy.ts";
import { Store } from "../lib/store.ts";
import type { DialogKinds, DialogName, DialogProps } from "./dialog_kinds.ts";

/** The view of each dialog. */
export type DialogViews = { [Name in DialogName]: ComponentType<DialogProps<Name>> };

/** A dialog that is open. */
export interface OpenDialog {
  id: number;
  view: ComponentType<Record<string, unknown>>;
  props: Record<string, unknown>;
}

/** The open dialogs, the topmost last. */
export class Dialogs extends Store {
  open: readonly OpenDialog[] = [];
  #load: () => Promise<DialogViews>;
  #made = 0;

  constructor(load: () => Promise<DialogViews>) {
    super();
    this.#load = load;
  }

  /** Ask, and resolve to the answer; null where the person gave none. */
  async ask<Name extends DialogName>(
    name: Name,
    props: DialogKinds[Name]["props"],
  ): Promise<DialogKinds[Name]["answer"] | null> {
    const { [name]: view } = await pending(this.#load());
    return await new Promise((resolve) => {
      const id = ++this.#made;
      const close = (answer: DialogKinds[Name]["answer"] | null) => {
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
