// What an undo and a redo do, from the question to the page afterwards. Loaded when one is asked for. No DOM in here.

import "../messages/later.ts"; // its texts come with it
import { t } from "../lib/i18n.ts";
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

/** Show what an undo of a turn would do, and do it once the person has decided. "": the last one. */
export async function askUndo(app: App, turnId: string): Promise<void> {
  const { conversation, notices, dialogs } = app;
  const api = new UndoApi(app.api);
  const id = turnId || lastTurnOf(conversation.messages);
  if (!id) return notices.show(t("undo.nothing-to-undo"));
  try {
    const preview = await api.preview(id);
    const undoEffect = async (effect: { turn_id: string; id: number }) => void await api.effect(id, effect.id);
    const choice = await dialogs.ask("undo", { preview, isRedo: false, undoEffect });
    if (!choice) return;
    const { revert, left } = await api.undo(id, choice);
    settle(app, revert, left, revert.includes_messages ? preview.question : "");
  } catch (error) {
    notices.fail(error);
  }
}

/** Bring back what was undone last. Asks only where files have changed since. */
export async function redo(app: App): Promise<void> {
  const { conversation: { instance }, notices, dialogs, undoing } = app;
  const api = new UndoApi(app.api);
  try {
    const { revert, preview } = await api.redoPreview(instance.id);
    if (!revert || !preview) {
      undoing.keep(null);
      return notices.show(t("undo.nothing-to-redo"));
    }
    let overwrite: UndoChoice["overwrite"] = [];
    if (preview.conflict_count + preview.left_count > 0 || preview.is_busy) {
      const choice = await dialogs.ask("undo", { preview, isRedo: true, undoEffect: null });
      if (!choice) return;
      overwrite = choice.overwrite;
    }
    const done = await api.redo(instance.id, revert.id, overwrite);
    settle(app, done.revert, done.left, "");
  } catch (error) {
    notices.fail(error);
  }
}

function settle(app: App, revert: Revert, left: readonly UndoFile[], question: string): void {
  const { conversation, composer, announcer, undoing } = app;
  undoing.keep(revert.redoes ? null : revert);
  conversation.leavePlace();
  conversation.refresh();
  if (question && composer.isEmpty) composer.fill(question);
  else composer.focus();
  announcer.say(t(revert.redoes ? "undo.redone" : "undo.undone"));
  if (left.length) app.notices.show(t("undo.files-left", { count: left.length }));
}
