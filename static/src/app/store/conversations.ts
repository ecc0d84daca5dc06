// Verbs on whole conversations, from their rows or their heads: rename, pin, archive, delete. A change shows in the list and in
// the open conversation at once.

import { t } from "../lib/i18n.ts";
import { PeopleApi } from "../net/people_api.ts";
import type { App } from "./app.ts";
import { fromInstance, titleOf } from "./instances.ts";
import type { Instance } from "./types.ts";

const UNDO_MS = 10_000;

type Parts = Pick<App, "announcer" | "api" | "composer" | "conversation" | "dialogs" | "list" | "notices" | "place">;

export class Conversations {
  #app: Parts;

  constructor(app: Parts) {
    this.#app = app;
  }

  /** Take over what is known of a conversation, wherever it is shown. */
  patch(id: string, change: Partial<Instance>): void {
    const { conversation, list } = this.#app;
    list.patch(id, change);
    if (conversation.instance.id === id) conversation.update(change);
  }

  async rename(item: Instance): Promise<void> {
    const { dialogs } = this.#app;
    const title = await dialogs.ask("ask-name", {
      title: t("conversation.rename-title"),
      label: t("conversation.name"),
      confirm: t("common.rename"),
      value: item.title,
    });
    if (title !== null) await this.#entitle(item, title);
  }

  /** The title that was written behind a command; without one it is asked for. */
  retitle(item: Instance, title: string): Promise<void> {
    if (item.id) return title ? this.#entitle(item, title) : this.rename(item);
    this.#app.composer.fill(`/title ${title}`); // there is nothing to name yet
    return Promise.resolve();
  }

  async #entitle(item: Instance, title: string): Promise<void> {
    const { api, notices } = this.#app;
    try {
      await api.changeInstance(item.id, { title });
      this.patch(item.id, { title });
    } catch (error) {
      notices.fail(error);
    }
  }

  setPinned(item: Instance, isPinned: boolean): Promise<void> {
    return this.#change(item, { pinned: isPinned }, t(isPinned ? "list.pinned-done" : "list.unpinned-done"));
  }

  setArchived(item: Instance, isArchived: boolean): Promise<void> {
    return this.#change(item, { archived: isArchived }, t(isArchived ? "list.archived-done" : "list.restored-done"));
  }

  /** Delete a conversation; for a moment it can be brought back from the notice. A sub-agent's goes for good, and a temporary one. */
  async remove(item: Instance): Promise<void> {
    const { api, list, notices } = this.#app;
    const isForGood = Boolean(item.parentId) || item.isTemporary;
    if (isForGood && !(await this.isSureToDelete(titleOf(item)))) return;
    const isOpen = this.#app.conversation.instance.id === item.id;
    try {
      await api.deleteInstance(item.id);
    } catch (error) {
      return notices.fail(error);
    }
    list.drop(item.id);
    if (isOpen) this.#app.place.newConversation();
    if (isForGood) return;
    const undo = { label: t("common.undo"), run: () => void this.restore(item, { opens: isOpen }) };
    notices.show(t("conversation.deleted-done", { title: titleOf(item) }), undo, UNDO_MS);
  }

  /** Bring a deleted conversation back. Resolves to whether it is back. */
  async restore(item: { id: string; title: string }, { opens = false } = {}): Promise<boolean> {
    const { announcer, api, list, notices } = this.#app;
    try {
      await api.restoreInstance(item.id);
    } catch (error) {
      notices.fail(error);
      return false;
    }
    announcer.say(t("conversation.is-back", { title: titleOf(item) }));
    await list.refresh();
    if (opens) await this.#app.place.open(item.id);
    return true;
  }

  /** Ask whether a conversation is to go for good. */
  async isSureToDelete(title: string): Promise<boolean> {
    const isSure = await this.#app.dialogs.ask("confirm", {
      title: t("conversation.delete-title"),
      text: t("conversation.delete-text", { title }),
      confirm: t("common.delete"),
      isDanger: true,
    });
    return isSure !== null;
  }

  /** Leave another's conversation. */
  async leave(item: Instance): Promise<void> {
    const { api, conversation, dialogs, list, notices } = this.#app;
    const isSure = await dialogs.ask("confirm", {
      title: t("conversation.leave-title"),
      text: t("conversation.leave-text", { title: titleOf(item) }),
      confirm: t("conversation.leave"),
      isDanger: true,
    });
    if (!isSure) return;
    try {
      await new PeopleApi(api, item.id).leave();
      list.drop(item.id);
      if (conversation.instance.id === item.id) this.#app.place.newConversation();
    } catch (error) {
      notices.fail(error);
    }
  }

  async #change(item: Instance, change: Record<string, unknown>, done: string): Promise<void> {
    const { api, announcer, list, notices } = this.#app;
    try {
      const changed = fromInstance(await api.changeInstance(item.id, change));
      const { isPinned, isArchived } = changed;
      if (this.#app.conversation.instance.id === item.id) this.#app.conversation.update({ isPinned, isArchived });
      list.moved({ ...item, ...changed });
      if (change.archived) notices.show(done, { label: t("common.undo"), run: () => this.setArchived(changed, false) });
      else announcer.say(done);
    } catch (error) {
      notices.fail(error);
    }
  }
}
