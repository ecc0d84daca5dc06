// Ways on from a message: a fork into a conversation of its own, another text in the place of an answer; and what comes
// in from a file.

import { askAgent, askAnswer, notice } from "./dialogs.js";
import { fromInstance } from "../app/store/instances.ts";
import { textOf } from "../app/store/text_of.ts";

const LONGEST_TITLE = 100;

/** In a list both would look the same otherwise. */
const forkTitle = (title) => (title && !title.startsWith("Fork: ") ? `Fork: ${title}`.slice(0, LONGEST_TITLE) : title);

export class Branching {
  constructor(page) {
    this.page = page;
  }

  get #conversation() {
    return this.page.conversation;
  }

  /** A conversation that shares everything up to this message and goes on alone. */
  async fork(message) {
    const { instance, place, sessionId } = this.#conversation;
    try {
      const made = fromInstance(
        await this.page.api.fork(
          instance.id,
          message.id,
          place?.sessionId ?? sessionId ?? undefined,
          forkTitle(instance.title),
        ),
      );
      this.page.sidebar.put(made);
      await this.page.open(made.id);
      this.page.speaker.say("You are in the fork.");
    } catch (error) {
      notice(error.message);
    }
  }

  /** Nothing is overwritten and nothing that follows is lost: the new text is another version, chosen or not. */
  async editAnswer(message) {
    const conversation = this.#conversation;
    const isLast = conversation.messages.at(-1) === message && !conversation.hasNewer;
    const wanted = await askAnswer(textOf(message), { isLast });
    if (wanted === null) return;
    try {
      await this.page.api.editAnswer(conversation.instance.id, message.id, wanted.text, wanted.continues);
      if (wanted.continues || isLast) {
        conversation.leavePlace();
        conversation.cutBefore(message.id);
      }
      await conversation.refreshAround(message.id);
      if (wanted.continues || isLast) this.page.speaker.say("Saved. The conversation goes on from this version.");
      else notice("Saved as another version.");
      if (wanted.continues) this.page.composer.focus();
    } catch (error) {
      notice(error.message);
    }
  }

  async importFile(file) {
    const { agents } = this.page.boot;
    const agent = agents.length > 1 ? await askAgent(agents, this.#conversation?.instance.agent) : agents[0]?.name;
    if (!agent) return;
    notice(`Reading “${file.name}”…`);
    try {
      const made = await this.page.api.importConversation(file, agent);
      await this.page.open(made.instance_id);
      this.page.sidebar.refresh();
      const count = made.message_count === 1 ? "1 message imported." : `${made.message_count} messages imported.`;
      notice(made.left_out.length ? `${count} Not imported: ${made.left_out.join(", ")}.` : count);
    } catch (error) {
      notice(error.message);
    }
  }
}
