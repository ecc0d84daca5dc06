// Messages that match a search, in all conversations or in one. The former hits stay until the new ones are there.

import { Due } from "../lib/busy.ts";
import type { Api } from "../net/api.ts";
import { Store } from "../lib/store.ts";
import { fromSearch, type Hit } from "./hits.ts";

const PAUSE_MS = 180;
const PAGE = 20;

/** What narrows a search; "" is all. `days`: how old messages may be. */
export interface SearchFilters {
  agent: string;
  /** The id of a project. */
  project: string;
  role: "" | "user" | "assistant";
  days: "" | "7" | "30" | "365";
}

export const NO_FILTERS: SearchFilters = { agent: "", project: "", role: "", days: "" };
const DAY_MS = 24 * 60 * 60 * 1000;

export class Search extends Store {
  query = "";
  filters: SearchFilters = NO_FILTERS;
  hits: readonly Hit[] = [];
  /** There is no answer to the present query yet. */
  isLoading = false;
  /** So many messages match that only the newest ones were looked at. */
  isPartial = false;
  error = "";
  /** Id of the message that was opened last. */
  openedId = "";
  #cursor = "";
  #abort: AbortController | null = null;
  readonly #due = new Due();
  #api: Api;
  #within: () => { instance?: string };

  constructor(api: Api, within: () => { instance?: string } = () => ({})) {
    super();
    this.#api = api;
    this.#within = within;
  }

  get hasMore(): boolean {
    return this.#cursor !== "";
  }

  /** Search as one types; an empty query shows nothing. */
  type(query: string): void {
    if (query === this.query) return;
    this.query = query;
    this.#due.clear();
    this.#abort?.abort();
    if (!query) return this.#show([], "", false);
    this.isLoading = true;
    this.changed();
    this.#due.set(() => this.#search(), PAUSE_MS);
  }

  clear(): void {
    this.type("");
    this.openedId = "";
  }

  /** Narrow the search, or widen it again. */
  narrow(change: Partial<SearchFilters>): void {
    this.filters = { ...this.filters, ...change };
    const { query } = this;
    this.query = "";
    this.type(query);
    this.changed();
  }

  /** Read on. Resolves to the first of the new hits. */
  async more(): Promise<Hit | undefined> {
    const { query, filters } = this;
    try {
      const page = fromSearch(await this.#api.search({ ...this.#wanted, cursor: this.#cursor }));
      if (query !== this.query || filters !== this.filters) return undefined; // another search by now
      this.#show([...this.hits, ...page.hits], page.cursor, page.isPartial);
      return page.hits[0];
    } catch (error) {
      this.error = (error as Error).message;
      this.changed();
      return undefined;
    }
  }

  opened(hit: Hit): void {
    this.openedId = hit.messageId;
    this.changed();
  }

  get #wanted() {
    const { agent, project, role, days } = this.filters;
    const since = days && new Date(Date.now() - Number(days) * DAY_MS).toISOString();
    return { q: this.query, limit: PAGE, agent, project, role, since, ...this.#within() };
  }

  async #search(): Promise<void> {
    const { signal } = this.#abort = new AbortController();
    try {
      const page = fromSearch(await this.#api.search(this.#wanted, { signal }));
      if (!signal.aborted) this.#show(page.hits, page.cursor, page.isPartial, page.problem);
    } catch (error) {
      if (signal.aborted) return;
      this.#show([], "", false, (error as Error).message);
    }
  }

  #show(hits: readonly Hit[], cursor: string, isPartial: boolean, error = ""): void {
    Object.assign(this, { hits, isPartial, error, isLoading: false });
    this.#cursor = cursor;
    this.changed();
  }
}
