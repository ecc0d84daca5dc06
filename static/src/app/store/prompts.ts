// The saved prompts of the person: read when a slash is typed first, and what is done with one.

import { Store } from "../lib/store.ts";
import { readPrompts, type SavedPrompt } from "../net/prompts_api.ts";
import type { App } from "./app.ts";
import { filled, placesOf } from "./prompt_words.ts";

export class Prompts extends Store {
  items: readonly SavedPrompt[] = [];
  #read: Promise<void> | null = null;

  /** Read them, once; a failed attempt is made again with the next slash. */
  load({ api }: App): Promise<void> {
    return this.#read ??= readPrompts(api).then((items) => this.put(items), () => void (this.#read = null));
  }

  put(items: readonly SavedPrompt[]): void {
    this.items = [...items].sort((one, other) => one.name.localeCompare(other.name));
    this.changed();
  }

  /** One was made or changed here. */
  keep(prompt: SavedPrompt): void {
    this.put([...this.items.filter(({ id }) => id !== prompt.id), prompt]);
  }

  drop(id: string): void {
    this.put(this.items.filter((item) => item.id !== id));
  }
}

export const prompts = new Prompts();

/** Into the message field, once its places are filled in. */
export async function usePrompt({ composer, dialogs }: App, { name, text }: SavedPrompt): Promise<void> {
  const places = placesOf(text);
  if (!places.length) return composer.fill(text);
  const values = await dialogs.ask("fill-prompt", { name, places });
  if (values) composer.fill(filled(text, values));
  else composer.focus();
}

/** Make one, or change it; resolves to it, or to null where the person did not. */
export async function editPrompt(app: App, prompt: Pick<SavedPrompt, "name" | "text"> & { id?: string }) {
  const saved = await app.dialogs.ask("edit-prompt", { api: app.api, prompt });
  if (saved) prompts.keep(saved);
  return saved;
}
