// Calls that wait for this person's decision, in all conversations: the newest first, read by pages.

import { Due } from "../lib/busy.ts";
import type { Api } from "../net/api.ts";
import { Store } from "../lib/store.ts";
import type { ChoiceQuestion, JsonObject, Offer, Risk } from "./types.ts";

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
  /** How much is at stake; empty where the tool does not say. */
  risk: Risk;
  /** The texts of others for which the injection guard asks. */
  because?: { kind: string; source: string }[];
  key?: string;
  offers: Offer[];
  /** The rule that asks; empty for none. */
  rule: string;
  choices: ChoiceQuestion[];
  requested_at: string;
  expires_at: string | null;
}

export interface ApprovalsPage {
  items: Approval[];
  count: number;
  next_cursor: string | null;
}

const PAGE = 50;
const LONGEST_PAGE = 200; // of the API

export class Approvals extends Store {
  items: readonly Approval[] = [];
  /** How many wait, over all pages. */
  count = 0;
  isLoaded = false;
  isLoading = false;
  error = "";
  #cursor = "";
  readonly #due = new Due();
  #decided = new Set<string>();
  #api: Api;

  constructor(api: Api) {
    super();
    this.#api = api;
  }

  get hasMore(): boolean {
    return this.#cursor !== "";
  }

  /** Begin with what the server has embedded. `isWhole`: it is a page to show, not the count alone. */
  start(page: ApprovalsPage, isWhole: boolean): void {
    this.count = page.count;
    if (isWhole) this.#take(page);
    else this.changed();
  }

  /** Something may have changed: read again, once for many changes. */
  refreshSoon(pause = 300): void {
    this.#due.set(() => this.refresh(), pause);
  }

  async refresh(): Promise<void> {
    this.isLoading = true;
    this.changed();
    try {
      this.#take(await this.#api.approvals({ limit: Math.min(LONGEST_PAGE, Math.max(PAGE, this.items.length)) }));
    } catch (error) {
      this.error = (error as Error).message;
      this.isLoading = false;
      this.changed();
    }
  }

  async more(): Promise<void> {
    const page = await this.#api.approvals({ cursor: this.#cursor }) as ApprovalsPage;
    const known = new Set(this.items.map((item) => item.call_id));
    this.items = [...this.items, ...page.items.filter((item) => !known.has(item.call_id))];
    this.count = page.count;
    this.#cursor = page.next_cursor ?? "";
    this.changed();
  }

  /** Decided here: it leaves the list, also where an older answer still has it. */
  drop(callId: string): void {
    this.#decided.add(callId);
    const left = this.items.filter((item) => item.call_id !== callId);
    this.count -= this.items.length - left.length;
    this.items = left;
    this.changed();
  }

  /** Show the newest page. */
  #take(answer: unknown): void {
    const page = answer as ApprovalsPage;
    this.items = kept(this.items, page.items.filter((item) => !this.#decided.has(item.call_id)));
    this.count = page.count;
    this.#cursor = page.next_cursor ?? "";
    Object.assign(this, { error: "", isLoaded: true, isLoading: false });
    this.changed();
  }
}

/** The new items, known ones as the same objects: what is being edited in a card stays. */
function kept(old: readonly Approval[], fresh: Approval[]): Approval[] {
  const known = new Map(old.map((item) => [item.call_id, item]));
  return fresh.map((item) => known.get(item.call_id) ?? item);
}
