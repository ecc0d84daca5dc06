// What one does with a message now and then: loaded when the first of it is done.

import { t } from "../lib/i18n.ts";
import { readAloud } from "../lib/read_aloud.ts";
import type { App } from "../store/app.ts";
import type { Conversation } from "../store/conversation.ts";
import type { Feedback } from "../store/feedback.ts";
import { NO_CHOICE } from "../store/models.ts";
import { editPrompt } from "../store/prompts.ts";
import type { Message } from "../store/types.ts";

export async function savePrompt(app: App, text: string): Promise<void> {
  if (await editPrompt(app, { name: "", text })) app.notices.show(t("prompts.saved"));
}

export function speak(app: App, text: string): void {
  app.announcer.say(t(readAloud(text) ? "feedback.reads" : "feedback.reads-no-more"));
}

/** Another answer, of a model that the person chooses: the conversation goes on with it. */
export async function askAnotherModel(app: App, conversation: Conversation, message: Message): Promise<void> {
  const { instance } = conversation;
  const current = instance.modelChoice?.model || instance.model;
  const model = await app.dialogs.ask("choose-model", { models: app.models.of(instance.agent), current });
  if (!model) return;
  try {
    await app.models.choose(conversation, { ...NO_CHOICE, ...instance.modelChoice, model });
    app.sending.regenerate(message);
  } catch (error) {
    app.notices.fail(error);
  }
}

/** Look at two of the answers side by side, and go on from the one that the person chooses. */
export async function compareAnswers(app: App, conversation: Conversation, message: Message): Promise<void> {
  const { instance } = conversation;
  const { id, siblings } = message;
  const chosen = await app.dialogs.ask("compare-answers", { app, instance, ids: siblings, current: id });
  if (!chosen) return;
  try {
    await conversation.selectSibling(chosen);
    if (app.conversation === conversation) {
      await app.place.open(instance.id, { place: { messageId: chosen, sessionId: "" } });
    }
  } catch (error) {
    app.notices.fail(error);
  }
}

/** See where the conversation forks, and go to the message that the person chooses. */
export async function showBranches(app: App, id: string): Promise<void> {
  const messageId = await app.dialogs.ask("branch-map", { api: app.api, instanceId: id });
  if (messageId) await app.place.open(id, { place: { messageId, sessionId: "" } });
}

const LONGEST_REASON = 1_000;

/** Give a word about an answer, and ask why; or take back the same one. */
export async function pressFeedback(app: App, feedback: Feedback, messageId: string, isGood: boolean): Promise<void> {
  try {
    if (feedback.of(messageId)?.is_good === isGood) return await feedback.set(messageId, null);
    await feedback.set(messageId, { is_good: isGood, reason: "" });
    const reason = await app.dialogs.ask("ask-name", {
      title: t("feedback.title"),
      label: t(isGood ? "feedback.reason" : "feedback.reason-bad"),
      confirm: t("feedback.send"),
      value: "",
      longest: LONGEST_REASON,
    });
    if (!reason) return;
    await feedback.set(messageId, { is_good: isGood, reason });
    app.notices.show(t("feedback.thanks"));
  } catch (error) {
    app.notices.fail(error);
  }
}
