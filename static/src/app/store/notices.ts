// Short notices at the foot of the page, and what is only said to those who listen to it.

import { Store } from "../lib/store.ts";
import { limitOf, messageOf } from "../net/api.ts";

const SHOWN_MS = 6_000;
const MOST_LINES = 12; // of the live region: older ones were read

/** A notice that goes by itself; `action` may undo what it reports. */
export interface Notice {
  id: number;
  text: string;
  action?: { label: string; run: () => void };
}

/** Notices that are shown, newest last. */
export class Notices extends Store {
  items: readonly Notice[] = [];
  #made = 0;

  /** `shownMs`: how long it stays. */
  show(text: string, action?: Notice["action"], shownMs = action ? SHOWN_MS * 2 : SHOWN_MS): void {
    const notice: Notice = { id: ++this.#made, text, action };
    this.items = [...this.items, notice];
    this.changed();
    setTimeout(() => this.close(notice.id), shownMs);
  }

  /** Show why something did not work. A limit is shown as such, whatever met it (`limits.ts`). */
  fail = (error: unknown): void => {
    if (!limitOf(error)) this.show(messageOf(error));
  };

  close(id: number): void {
    if (!this.items.some((item) => item.id === id)) return;
    this.items = this.items.filter((item) => item.id !== id);
    this.changed();
  }
}

/** Lines of the polite live region, oldest first. */
export class Announcer extends Store {
  lines: readonly { id: number; text: string }[] = [];
  #made = 0;

  say(text: string): void {
    this.lines = [...this.lines, { id: ++this.#made, text }].slice(-MOST_LINES);
    this.changed();
  }
}
