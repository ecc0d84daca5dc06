// Ways on from a message: a fork into a conversation of its own, another text in the place of an answer; and conversations that
// come from a file.

import { t } from "../lib/i18n.ts";
import type { App } from "./app.ts";
import { fromInstance } from "./instances.ts";
import { textOf } from "./text_of.ts";
import type { Message } from "./types.ts";

const LONGEST_TITLE = 100;

export class Branching {
  #app: App;

  constructor(app: App) {
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
      await this.#app.open(made.id);
      announcer.say(t("conversation.in-the-fork"));
    } catch (error) {
      notices.fail(error);
    }
  }

  /** Nothing is overwritten and nothing that follows is lost: the new text is another version, chosen or not. */
  async editAnswer(message: Message): Promise<void> {
    const { api, composer, conversation, dialogs, notices, announcer } = this.#app;
    const isLast = conversation.messages.at(-1) === message && !conversation.hasNewer;
    const load = async () => (await import("../dialogs/all.ts")).EditAnswer;
    const wanted = await dialogs.ask(load, { text: textOf(message), isLast });
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

  async importFile(file: File): Promise<void> {
    const { agents, api, conversation, dialogs, list, notices } = this.#app;
    const load = async () => (await import("../dialogs/all.ts")).ChooseAgent;
    const agent = agents.length > 1
      ? await dialogs.ask(load, { agents, current: conversation.instance.agent })
      : agents[0]?.name;
    if (!agent) return;
    notices.show(t("list.importing", { name: file.name }));
    try {
      const made = await api.importConversation(file, agent) as {
        instance_id: string;
        message_count: number;
        left_out: string[];
      };
      await this.#app.open(made.instance_id);
      list.refresh();
      const done = t("list.imported", { count: made.message_count });
      notices.show(
        made.left_out.length ? `${done} ${t("list.not-imported", { what: made.left_out.join(", ") })}` : done,
      );
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
