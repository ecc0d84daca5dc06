// Taking back what turns did, and bringing it back: what was undone here last, and the verbs. No DOM in here.

import { t } from "../lib/i18n.ts";
import { Store } from "../lib/store.ts";
import { type Revert, UndoApi, type UndoFile, type UndoPreview } from "../net/undo_api.ts";
import type { App } from "./app.ts";
import type { Message } from "./types.ts";

/** What a person has decided: conflicts that are overwritten are named with the version that was seen. */
export interface UndoChoice {
  files: boolean;
  messages: boolean;
  overwrite: { id: number; version: number }[];
}

/** The turn that an undo begins with: that of the last message which has one. */
export const lastTurnOf = (messages: readonly Message[]): string =>
  messages.findLast((message) => message.role === "assistant" && message.turn)?.turn?.id ?? "";

/** Whether something would change: a file, a message, or a conflict that may be decided. */
export const isSomething = (preview: UndoPreview): boolean =>
  preview.file_count > 0 || preview.conflict_count > 0 || preview.leaf_id !== null;

export const chosenOf = (files: readonly UndoFile[], isChosen: (file: UndoFile) => boolean): UndoChoice["overwrite"] =>
  files.filter((file) => file.hindrance === "changed" && isChosen(file)).map(({ id, version }) => ({ id, version }));

export class Undoing extends Store {
  /** The undo that can be brought back, as far as it was made in this tab; null where there is none. */
  last: Revert | null = null;
  readonly api: UndoApi;
  readonly #app: App;

  constructor(app: App) {
    super();
    this.#app = app;
    this.api = new UndoApi(app.api);
  }

  /** Show what an undo of a turn would do, and do it once the person has decided. "": the last one. */
  async ask(turnId = ""): Promise<void> {
    const { conversation, notices, dialogs } = this.#app;
    const id = turnId || lastTurnOf(conversation.messages);
    if (!id) return notices.show(t("message.nothing-to-undo"));
    try {
      const preview = await this.api.preview(id);
      const load = async () => (await import("../dialogs/all.ts")).Undo;
      const undoEffect = async (effect: { turn_id: string; id: number }) => void await this.api.effect(id, effect.id);
      const choice = await dialogs.ask(load, { preview, isRedo: false, undoEffect });
      if (!choice) return;
      const { revert, left } = await this.api.undo(id, choice);
      this.#settle(revert, left, revert.includes_messages ? preview.question : "");
    } catch (error) {
      notices.fail(error);
    }
  }

  /** Bring back what was undone last. Asks only where files have changed since. */
  async redo(): Promise<void> {
    const { conversation: { instance }, notices, dialogs } = this.#app;
    try {
      const { revert, preview } = await this.api.redoPreview(instance.id);
      if (!revert || !preview) {
        this.#put(null);
        return notices.show(t("message.nothing-to-redo"));
      }
      let overwrite: UndoChoice["overwrite"] = [];
      if (preview.conflict_count + preview.left_count > 0 || preview.is_busy) {
        const load = async () => (await import("../dialogs/all.ts")).Undo;
        const choice = await dialogs.ask(load, { preview, isRedo: true, undoEffect: null });
        if (!choice) return;
        overwrite = choice.overwrite;
      }
      const done = await this.api.redo(instance.id, revert.id, overwrite);
      this.#settle(done.revert, done.left, "");
    } catch (error) {
      notices.fail(error);
    }
  }

  /** Another conversation is shown, or this one went on. */
  forget(): void {
    if (this.last) this.#put(null);
  }

  #settle(revert: Revert, left: readonly UndoFile[], question: string): void {
    const { conversation, composer, announcer } = this.#app;
    this.#put(revert.redoes ? null : revert);
    conversation.leavePlace();
    conversation.refresh();
    if (question && composer.isEmpty) composer.fill(question);
    else composer.focus();
    announcer.say(t(revert.redoes ? "message.redone" : "message.undone"));
    if (left.length) this.#app.notices.show(t("message.files-left", { count: left.length }));
  }

  #put(last: Revert | null): void {
    this.last = last;
    this.changed();
  }
}
