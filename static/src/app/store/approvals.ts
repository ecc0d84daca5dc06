// Calls that wait for this person's decision, in all conversations: the newest first, read by pages.

import type { Api } from "../net/api.ts";
import { formatLocale } from "../lib/i18n.ts";
import { Store } from "../lib/store.ts";
import type { JsonObject } from "./types.ts";

/** One of them, as the API gives it. `sentence`: the tool's own words for what would happen; may be empty. */
export interface Approval {
  call_id: string;
  instance_id: string;
  title: string;
  agent: string;
  message_id: string;
  tool: string;
  tool_title: string;
  sentence: string;
  input: unknown;
  input_schema: JsonObject | null;
  /** Names of arguments that may be edited, or all of them (true), or none (false). */
  may_edit: boolean | string[];
  requested_at: string;
  expires_at: string | null;
}

export class Approvals extends Store {
  items: readonly Approval[] = [];
  isLoaded = false;
  isLoading = false;
  error = "";
  #cursor = "";
  #timer = 0;
  #api: Api;

  constructor(api: Api) {
    super();
    this.#api = api;
  }

  get hasMore(): boolean {
    return this.#cursor !== "";
  }

  /** How many wait, as far as they were read. */
  get count(): number {
    return this.items.length;
  }

  /** The count for the eye: "50+" where there are more. */
  get countText(): string {
    return `${new Intl.NumberFormat(formatLocale()).format(this.count)}${this.hasMore ? "+" : ""}`;
  }

  /** Something may have changed: read again, once for many changes. */
  refreshSoon(pause = 300): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.refresh(), pause);
  }

  async refresh(): Promise<void> {
    this.isLoading = true;
    this.changed();
    try {
      const page = await this.#api.approvals() as { items: Approval[]; next_cursor: string | null };
      this.items = page.items;
      this.#cursor = page.next_cursor ?? "";
      this.error = "";
      this.isLoaded = true;
    } catch (error) {
      this.error = (error as Error).message;
    }
    this.isLoading = false;
    this.changed();
  }

  async more(): Promise<void> {
    const page = await this.#api.approvals({ cursor: this.#cursor }) as {
      items: Approval[];
      next_cursor: string | null;
    };
    const known = new Set(this.items.map((item) => item.call_id));
    this.items = [...this.items, ...page.items.filter((item) => !known.has(item.call_id))];
    this.#cursor = page.next_cursor ?? "";
    this.changed();
  }

  /** Decided here: it leaves the list. */
  drop(callId: string): void {
    this.items = this.items.filter((item) => item.call_id !== callId);
    this.changed();
  }
}
