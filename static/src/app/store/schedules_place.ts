// Where one is among the schedules of a conversation, and what one has written there and not stored. It outlives the view.

import { Store } from "../lib/store.ts";
import type { TimesDraft } from "./schedule_times.ts";

export type SchedulesView =
  | { kind: "list" }
  | { kind: "new" }
  | { kind: "item"; key: string }
  | { kind: "edit"; key: string };

export interface ScheduleDraft {
  prompt: string;
  title: string;
  times: TimesDraft;
}

export class SchedulesPlace extends Store {
  instanceId = "";
  view: SchedulesView = { kind: "list" };
  /** Of the form that is open, by `new` or a schedule's id. */
  readonly drafts = new Map<string, ScheduleDraft>();

  /** The place in a conversation: another one begins at its list. */
  enter(instanceId: string): void {
    if (this.instanceId === instanceId) return;
    Object.assign(this, { instanceId, view: { kind: "list" } });
    this.drafts.clear();
    this.changed();
  }

  open(view: SchedulesView): void {
    this.view = view;
    this.changed();
  }
}

/** The only one: the page shows one conversation. Loaded with the panel's view. */
export const schedulesPlace = new SchedulesPlace();
