// Whether the panel beside the conversation is open, and which of its views is shown. What is in a view is its own affair.

import { recall, remember } from "../lib/storage.ts";
import { Store } from "../lib/store.ts";

export class PanelState extends Store {
  isOpen: boolean;
  view: string;
  /** Grows with each wish that the panel takes the focus. */
  focusWishes = 0;

  /** `views`: names of the views there are, the first one is shown first. */
  constructor(views: readonly string[], isWide: boolean) {
    super();
    const kept = recall("panel", {}) as { isOpen?: boolean; tab?: string };
    const wanted = new URLSearchParams(location.search).get("panel") ?? "";
    this.view = views.find((name) => name === wanted) ?? views.find((name) => name === kept.tab) ?? views[0];
    this.isOpen = views.includes(wanted) || (kept.isOpen === true && isWide);
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
