// Who is in the conversation that is shown. Nothing is asked where its owner is alone.

import { Store } from "../lib/store.ts";
import { t } from "../lib/i18n.ts";
import type { Api } from "../net/api.ts";
import { type People as Found, PeopleApi, type Person } from "../net/people_api.ts";
import { hasPeople } from "./instances.ts";
import type { Instance, Message } from "./types.ts";

/** The author of a message for people. */
export interface Author {
  name: string;
  isYou: boolean;
}

const HERE_MS = 45_000; // after the last sign
const TYPING_MS = 5_000;
const SAY_MS = 15_000;
const AGAIN_MS = 2_000;

export class People extends Store {
  /** The owner first; none where the owner is alone, or while it is not known. */
  items: readonly Person[] = [];
  #former: Readonly<Record<string, string>> = {};
  #instanceId = "";
  readonly #seen = new Map<string, { until: number; typesUntil: number }>(); // by author, in milliseconds
  #saidAt = 0;
  #saidTyping = false;
  readonly #api: Api;
  readonly #patch: (id: string, change: Pick<Instance, "role" | "isShared">) => void;

  /** `patch` takes over what is learnt of the conversation. */
  constructor(api: Api, patch: (id: string, change: Pick<Instance, "role" | "isShared">) => void) {
    super();
    this.#api = api;
    this.#patch = patch;
  }

  /** Whether names are needed to tell who speaks. */
  get areSeveral(): boolean {
    return this.items.length > 1 || Object.keys(this.#former).length > 0;
  }

  /** Another conversation is shown. */
  show(instance: Instance): void {
    this.#instanceId = instance.id;
    this.items = [];
    this.#former = {};
    this.#seen.clear();
    this.changed();
    if (instance.id && hasPeople(instance)) this.read(instance.id);
  }

  /** Read who is in it. */
  async read(instanceId: string): Promise<void> {
    try {
      const found = await new PeopleApi(this.#api, instanceId).people();
      if (instanceId === this.#instanceId) this.#take(found);
    } catch {
      // Who may not see it any more learns it from the line; names are no reason for a second notice.
    }
  }

  #take({ items, role, former }: Found): void {
    this.items = items;
    this.#former = former;
    this.#patch(this.#instanceId, { role, isShared: items.length > 1 });
    this.changed();
  }

  /** Who wrote a message of a person. `isOwn`: it is on its way from here. */
  authorOf(message: Message, isOwn: boolean): Author {
    const author = String(message.metadata.thinkAuthor ?? "");
    const person = this.items.find((each) => isOwn ? each.is_you : each.author === author);
    if (person) return { name: person.name, isYou: person.is_you };
    return { name: this.#former[author] ?? t("message.someone"), isYou: false };
  }

  /** Another person has the conversation open. */
  noticed({ author, isTyping }: { author: string; isTyping: boolean }): void {
    const now = Date.now();
    this.#seen.set(author, { until: now + HERE_MS, typesUntil: isTyping ? now + TYPING_MS : 0 });
    this.changed();
    setTimeout(() => this.changed(), (isTyping ? TYPING_MS : HERE_MS) + 50); // it is over by then
  }

  /** Whether this is to be said now: that one is here every so often, and that one types while one does. */
  isDue(isTyping: boolean): boolean {
    const pause = isTyping && !this.#saidTyping ? 0 : isTyping ? AGAIN_MS : SAY_MS;
    if (!this.areSeveral || Date.now() - this.#saidAt < pause) return false;
    this.#saidAt = Date.now();
    this.#saidTyping = isTyping;
    return true;
  }

  /** Whether a person has the conversation open. */
  isHere({ author, is_you }: Person): boolean {
    return is_you || (this.#seen.get(author)?.until ?? 0) > Date.now();
  }

  /** Names of the others who are writing just now. */
  get typing(): string[] {
    const types = ({ author }: Person) => (this.#seen.get(author)?.typesUntil ?? 0) > Date.now();
    return this.items.filter((person) => !person.is_you && types(person)).map(({ name }) => name);
  }

  /** Names of those who may answer a question about a call. */
  get approvers(): string[] {
    const found = this.items.filter(({ role }) => role === "owner" || role === "approver");
    return found.map(({ name, is_you }) => (is_you ? t("message.you") : name));
  }
}

/** The first letters of a name, at most two. */
export function initialsOf(name: string): string {
  const words = name.split(/[\s._-]+/u).filter(Boolean);
  const letters = words.length > 1 ? words.slice(0, 2).map((word) => [...word][0]) : [...(words[0] ?? "?")].slice(0, 2);
  return letters.join("").toLocaleUpperCase();
}
