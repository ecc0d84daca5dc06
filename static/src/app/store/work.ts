// A section of what is at work for the person, read by pages and read again while it is shown.

import { Due } from "../lib/busy.ts";
import { Store } from "../lib/store.ts";
import { messageOf } from "../net/api.ts";
import type { WorkApi, WorkItem, WorkPage, WorkSection } from "../net/work_api.ts";

const PAGE = 50;
const LONGEST_PAGE = 200; // of the API
const LOOK_MS = 4_000; // while something is under way
const REST_MS = 30_000;

export class WorkList extends Store {
  readonly section: WorkSection;
  items: readonly WorkItem[] = [];
  isLoaded = false;
  error = "";
  #cursor = "";
  readonly #api: WorkApi;
  readonly #due = new Due();
  #look = 0;
  #isStopped = false;

  constructor(api: WorkApi, section: WorkSection) {
    super();
    this.#api = api;
    this.section = section;
  }

  get hasMore(): boolean {
    return this.#cursor !== "";
  }

  /** Something may have changed: read again, once for many changes. */
  soon(pause = 300): void {
    if (!this.#isStopped) this.#due.set(() => this.refresh(), pause);
  }

  async refresh(): Promise<void> {
    clearTimeout(this.#look);
    const limit = Math.min(LONGEST_PAGE, Math.max(PAGE, this.items.length));
    try {
      this.#take(await this.#api.page(this.section, { limit }));
    } catch (error) {
      this.error = messageOf(error);
    }
    this.changed();
    if (!this.#isStopped) this.#look = setTimeout(() => this.refresh(), isBusy(this.items) ? LOOK_MS : REST_MS);
  }

  async more(): Promise<void> {
    const page = await this.#api.page(this.section, { cursor: this.#cursor });
    const known = new Set(this.items.map(({ id }) => id));
    this.items = [...this.items, ...page.items.filter(({ id }) => !known.has(id))];
    this.#cursor = page.next_cursor ?? "";
    this.changed();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#look);
    this.#due.clear();
  }

  #take(page: WorkPage): void {
    this.items = page.items;
    this.#cursor = page.next_cursor ?? "";
    Object.assign(this, { error: "", isLoaded: true });
  }
}

/** Whether something of it changes by itself before long. */
const isBusy = (items: readonly WorkItem[]): boolean =>
  items.some(({ kind, last_run, ended_at }) =>
    kind === "schedule" ? last_run?.status === "running" || last_run?.status === "waiting" : !ended_at
  );
