// The injection guard of one conversation: what was read from elsewhere, and what a person decides about it.

import { Store } from "../lib/store.ts";
import { type Api, messageOf, type Schemas } from "../net/api.ts";

export type GuardState = Schemas["GuardOut"];
export type GuardText = Schemas["GuardTextOut"];
export type GuardDecision = Schemas["GuardIn"]["decision"];

export class Guards extends Store {
  /** Null until it is loaded. */
  state: GuardState | null = null;
  error = "";
  isBusy = false;
  readonly #api: Api;
  readonly #path: string;
  #asked = 0;

  constructor(api: Api, instanceId: string) {
    super();
    this.#api = api;
    this.#path = `/instances/${encodeURIComponent(instanceId)}/guard`;
  }

  /** Read it again; of several requests the last one counts. */
  async load(): Promise<void> {
    await this.#ask(() => this.#api.request<GuardState>("GET", this.#path));
  }

  /** A decision covers what is shown. */
  async decide(decision: GuardDecision): Promise<void> {
    this.isBusy = true;
    this.changed();
    const seen = this.state?.count ?? 0;
    await this.#ask(() => this.#api.request<GuardState>("POST", this.#path, { decision, seen }));
  }

  async #ask(request: () => Promise<GuardState>): Promise<void> {
    const mine = ++this.#asked;
    try {
      const state = await request();
      if (mine === this.#asked) Object.assign(this, { state, error: "" });
    } catch (error) {
      if (mine === this.#asked) this.error = messageOf(error);
    }
    if (mine === this.#asked) this.isBusy = false;
    this.changed();
  }
}

/** Whether a source is a path in the workspace. */
export const isPath = (text: Pick<GuardText, "source">): boolean => /^\/[^/]/.test(text.source);

/** Sources, each once, the newest first. */
export function placesOf(texts: readonly GuardText[]): GuardText[] {
  const seen = new Map<string, GuardText>();
  for (const text of texts) {
    const key = `${text.origin} ${text.source}`;
    if (!seen.has(key)) seen.set(key, text);
  }
  return [...seen.values()];
}
