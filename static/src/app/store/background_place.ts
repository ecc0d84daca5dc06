// Where one is among the background work of a conversation. It outlives the view.

import { Store } from "../lib/store.ts";

const PAGE = 20;

export class BackgroundPlace extends Store {
  instanceId = "";
  /** The fiber that is open; "" for the list. */
  openId = "";
  /** How many ended ones are listed. */
  shown = PAGE;

  /** The place in a conversation: another one begins at its list. */
  enter(instanceId: string): void {
    if (this.instanceId === instanceId) return;
    Object.assign(this, { instanceId, openId: "", shown: PAGE });
    this.changed();
  }

  open(id: string): void {
    this.openId = id;
    this.changed();
  }

  showMore(): void {
    this.shown += PAGE;
    this.changed();
  }
}

/** The only one: the page shows one conversation. Loaded with the panel's view. */
export const backgroundPlace = new BackgroundPlace();
