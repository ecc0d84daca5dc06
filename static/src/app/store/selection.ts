// Conversations that are selected in the list, and what one can do with all of them at once. No DOM in here.

import { t } from "../lib/i18n.ts";
import { Store } from "../lib/store.ts";
import { BulkApi } from "../net/bulk_api.ts";
import type { App } from "./app.ts";
import { isOwn } from "./instances.ts";
import type { Instance } from "./types.ts";

const MOST = 100; // of the API
const UNDO_MS = 10_000;

type Parts = Pick<App, "api" | "conversation" | "dialogs" | "list" | "notices" | "place">;

export class Selection extends Store {
  ids: ReadonlySet<string> = new Set();
  /** What was selected last: a range begins there. */
  #anchor = "";
  #app: Parts;
  #api: BulkApi;

  constructor(app: Parts) {
    super();
    this.#app = app;
    this.#api = new BulkApi(app.api);
  }

  get count(): number {
    return this.ids.size;
  }

  /** Select one, or no longer. */
  toggle(id: string): void {
    const ids = new Set(this.ids);
    if (!ids.delete(id)) ids.add(id);
    this.#anchor = id;
    this.#put(ids);
  }

  /** Select from the last one up to this one, as they stand in `order`; without a last one from the open conversation. */
  extendTo(id: string, order: readonly string[]): void {
    const from = order.indexOf(this.#anchor || this.#app.list.currentId);
    const to = order.indexOf(id);
    if (from < 0 || to < 0) return this.toggle(id);
    this.#put(new Set([...this.ids, ...order.slice(Math.min(from, to), Math.max(from, to) + 1)]));
  }

  clear(): void {
    this.#anchor = "";
    this.#put(new Set());
  }

  async archive(isArchived: boolean): Promise<void> {
    const { list, notices } = this.#app;
    const ids = this.#taken();
    await this.#run(() => this.#api.archive(ids, isArchived), async (done) => {
      done.forEach((id) => list.drop(id));
      await list.refresh();
      const undo = { label: t("common.undo"), run: () => void this.#again(() => this.#api.archive(done, !isArchived)) };
      notices.show(
        t(isArchived ? "list.many-archived" : "list.many-restored", { count: done.length }),
        undo,
        UNDO_MS,
      );
    });
  }

  async remove(): Promise<void> {
    const { conversation, list, notices } = this.#app;
    const ids = this.#taken();
    await this.#run(() => this.#api.remove(ids), async (done) => {
      done.forEach((id) => list.drop(id));
      if (done.includes(conversation.instance.id)) this.#app.place.newConversation();
      await list.refresh();
      const undo = { label: t("common.undo"), run: () => void this.#again(() => this.#api.restore(done)) };
      notices.show(t("list.many-deleted", { count: done.length }), undo, UNDO_MS);
    });
  }

  /** Ask for a format, and save them as one file. */
  async save(): Promise<void> {
    const { api, dialogs } = this.#app;
    const ids = this.#taken();
    if (await dialogs.ask("export-conversations", { api, sessionId: "", title: "", ids })) this.clear();
  }

  #taken = (): string[] => [...this.ids].slice(0, MOST);

  /** Do it, say what was left out, and select nothing any more. */
  async #run(ask: () => Promise<Record<string, string>>, after: (done: string[]) => Promise<void>): Promise<void> {
    const { notices } = this.#app;
    try {
      const outcomes = Object.entries(await ask());
      const done = outcomes.filter(([, outcome]) => outcome === "done").map(([id]) => id);
      this.clear();
      if (done.length) await after(done);
      if (done.length < outcomes.length) {
        notices.show(t("list.many-left", { count: outcomes.length - done.length }));
      }
    } catch (error) {
      notices.fail(error);
    }
  }

  async #again(undo: () => Promise<unknown>): Promise<void> {
    try {
      await undo();
    } catch (error) {
      this.#app.notices.fail(error);
    }
    await this.#app.list.refresh();
  }

  #put(ids: ReadonlySet<string>): void {
    if (ids.size > MOST) return this.#app.notices.show(t("list.many-most", { count: MOST }));
    this.ids = ids;
    this.changed();
  }
}

/** Whether a conversation can be selected: what concerns the whole of it is its owner's. */
export const isSelectable = (item: Instance): boolean => isOwn(item);
