// Whether the panel beside the conversation is open, and which of its views is shown. What is in a view is its own affair.

import { recall, remember } from "../lib/storage.ts";
import { Store } from "../lib/store.ts";

export class PanelState extends Store {
  isOpen: boolean;
  /** Its name, "" for the first one. The views are known when the panel is loaded; a name that is none is the first one's. */
  view: string;
  /** Grows with each wish that the panel takes the focus. */
  focusWishes = 0;

  constructor(isWide: boolean) {
    super();
    const kept = recall("panel", {}) as { isOpen?: boolean; tab?: string };
    const wanted = new URLSearchParams(location.search).get("panel") ?? "";
    this.view = wanted || (kept.tab ?? "");
    this.isOpen = wanted !== "" || (kept.isOpen === true && isWide);
  }

  open(view = this.view): void {
    this.isOpen = true;
    this.view = view;
    this.focusWishes += 1;
    this.#keep();
  }

  /** What the button of a view does: open it, or close the panel where it is what is shown. */
  toggle(view = ""): void {
    if (this.isOpen && (!view || view === this.view)) this.close();
    else this.open(view || this.view);
  }

  select(view: string): void {
    this.view = view;
    this.#keep();
  }

  close(): void {
    this.isOpen = false;
    this.#keep();
  }

  #keep(): void {
    remember("panel", { isOpen: this.isOpen, tab: this.view });
    this.changed();
  }
}
