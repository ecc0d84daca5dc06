// The histories of one conversation, where its agent keeps several: which there are, and the verbs on them.

import type { Api } from "../net/api.ts";
import { Store } from "../lib/store.ts";
import type { Conversation } from "./conversation.ts";

/** A history as the API gives it. */
export interface History {
  id: string;
  name: string;
  is_current: boolean;
  message_count: number;
  summary: string;
}

export class Histories extends Store {
  items: readonly History[] = [];
  isLoaded = false;
  #conversation: Conversation | null = null;
  #api: Api;
  #fail: (error: unknown) => void;

  constructor(api: Api, fail: (error: unknown) => void) {
    super();
    this.#api = api;
    this.#fail = fail;
  }

  get current(): History | undefined {
    return this.items.find((item) => item.is_current);
  }

  /** Show the histories of this conversation, if its agent keeps several. */
  show(conversation: Conversation): void {
    this.#conversation = conversation;
    this.items = [];
    this.isLoaded = false;
    this.changed();
    this.refresh();
  }

  /** Read the list again: another one may be current, here or in another window. */
  async refresh(): Promise<void> {
    const conversation = this.#conversation;
    if (!conversation?.instance.id || !conversation.instance.keepsSessions) return;
    try {
      const items = await this.#api.sessions(conversation.instance.id) as History[];
      if (conversation !== this.#conversation) return;
      this.items = items;
      this.isLoaded = true;
      this.changed();
    } catch (error) {
      this.#fail(error);
    }
  }

  switchTo(history: History): Promise<void> {
    this.#conversation?.leavePlace();
    if (history.is_current) return this.#conversation?.refresh() ?? Promise.resolve();
    return this.#do((id) => this.#api.switchSession(id, history.id));
  }

  create = (name: string): Promise<void> => this.#do((id) => this.#api.createSession(id, name));
  rename = (history: History, name: string): Promise<void> =>
    this.#do(() => this.#api.changeSession(history.id, { name }));
  remove = (history: History): Promise<void> => this.#do(() => this.#api.deleteSession(history.id));

  /** Do it, then show what the server has. The socket brings the messages. */
  async #do(action: (instanceId: string) => Promise<unknown>): Promise<void> {
    const conversation = this.#conversation;
    if (!conversation) return;
    try {
      await action(conversation.instance.id);
    } catch (error) {
      this.#fail(error);
    }
    await this.refresh();
    await conversation.refresh();
  }
}
