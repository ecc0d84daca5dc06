// What the person thinks of the answers of one conversation: read once, changed at once, and back where that failed.

import { Store } from "../lib/store.ts";
import type { Api } from "../net/api.ts";
import { giveFeedback, type GivenFeedback, readFeedback, takeFeedbackBack } from "../net/feedback_api.ts";

export type Word = Pick<GivenFeedback, "is_good" | "reason">;

export class Feedback extends Store {
  readonly #api: Api;
  readonly #id: string;
  #words = new Map<string, Word>();

  constructor(api: Api, instanceId: string) {
    super();
    this.#api = api;
    this.#id = instanceId;
    readFeedback(api, instanceId).then((items) => {
      this.#words = new Map([...items.map((item): [string, Word] => [item.message_id, item]), ...this.#words]);
      this.changed();
    }, () => {}); // what was given before is not shown then; it can be given anew
  }

  of(messageId: string): Word | null {
    return this.#words.get(messageId) ?? null;
  }

  /** Give a word, or take it back with null. Throws an `ApiError`, and nothing has changed then. */
  async set(messageId: string, word: Word | null): Promise<void> {
    const before = this.of(messageId);
    this.#put(messageId, word);
    try {
      if (word) await giveFeedback(this.#api, this.#id, messageId, word);
      else await takeFeedbackBack(this.#api, this.#id, messageId);
    } catch (error) {
      this.#put(messageId, before);
      throw error;
    }
  }

  #put(messageId: string, word: Word | null): void {
    if (word) this.#words.set(messageId, word);
    else this.#words.delete(messageId);
    this.changed();
  }
}

const known = new WeakMap<object, Feedback>();

/** That of a conversation, which is the key: another object is read anew. */
export function feedbackOf(conversation: { instance: { id: string } }, api: Api): Feedback {
  let found = known.get(conversation);
  if (!found) known.set(conversation, found = new Feedback(api, conversation.instance.id));
  return found;
}
