// Ways on from a message: a fork into a conversation of its own, and another text in the place of an answer.

import { t } from "../lib/i18n.ts";
import type { App } from "./app.ts";
import { fromInstance } from "./instances.ts";
import { textOf } from "./text_of.ts";
import type { Message } from "./types.ts";

const LONGEST_TITLE = 100;

type Parts = Pick<App, "announcer" | "api" | "composer" | "conversation" | "dialogs" | "list" | "notices" | "place">;

export class Branching {
  #app: Parts;

  constructor(app: Parts) {
    this.#app = app;
  }

  /** A conversation that shares everything up to this message and goes on alone. */
  async fork(message: Message): Promise<void> {
    const { api, list, notices, announcer, conversation: { instance, place, sessionId } } = this.#app;
    try {
      const raw = await api.fork(
        instance.id,
        message.id,
        place?.sessionId ?? sessionId ?? undefined,
        forkTitle(instance.title),
      );
      const made = fromInstance(raw);
      list.put(made);
      await this.#app.place.open(made.id);
      announcer.say(t("conversation.in-the-fork"));
    } catch (error) {
      notices.fail(error);
    }
  }

  /** Nothing is overwritten and nothing that follows is lost: the new text is another version, chosen or not. */
  async editAnswer(message: Message): Promise<void> {
    const { api, composer, conversation, dialogs, notices, announcer } = this.#app;
    const isLast = conversation.messages.at(-1) === message && !conversation.hasNewer;
    const wanted = await dialogs.ask("edit-answer", { text: textOf(message), isLast });
    if (!wanted) return;
    try {
      await api.editAnswer(conversation.instance.id, message.id, wanted.text, wanted.continues);
      if (wanted.continues || isLast) {
        conversation.leavePlace();
        conversation.cutBefore(message.id);
      }
      await conversation.refreshAround(message.id);
      if (wanted.continues || isLast) announcer.say(t("message.edit-continues"));
      else notices.show(t("message.edit-saved"));
      if (wanted.continues) composer.focus();
    } catch (error) {
      notices.fail(error);
    }
  }
}

/** In a list both would look the same otherwise. */
function forkTitle(title: string): string {
  const marked = t("conversation.fork-title", { title });
  return title && !title.startsWith(t("conversation.fork-title", { title: "" }))
    ? marked.slice(0, LONGEST_TITLE)
    : title;
}
