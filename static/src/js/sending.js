// What is said: a new message, another version of one, another answer; and what can be taken back on the way. All of it goes
// through the outbox, so that nothing is lost and nothing is said twice.

import { newId } from "../app/lib/ids.ts";
import { notice } from "./dialogs.js";
import { fromInstance } from "../app/store/instances.ts";
import { recall, remember } from "../app/lib/storage.ts";
import { textOf } from "../app/store/text_of.ts";
import { arrived, keep } from "../app/store/unsent.ts";
import { titleFor } from "../app/store/titles.ts";

/** File parts as the composer keeps them. */
const storedFiles = (parts) =>
  parts.filter((part) => part.type === "file").map((part) => ({
    url: part.url,
    media_type: part.mediaType,
    name: part.filename ?? "file",
    byte_size: part.byteSize ?? 0,
  }));

export class Sending {
  constructor(page) {
    this.page = page;
  }

  get #conversation() {
    return this.page.conversation;
  }

  get #outbox() {
    return this.page.outbox;
  }

  /** `written`: what the composer gives, {text, files, edited: message|null}. */
  async send(written) {
    const conversation = this.#conversation;
    const { edited } = written;
    try {
      // What is written is written to what one reads: that branch goes on. An edit names its place by itself.
      if (edited && !conversation.place?.isForeign) conversation.leavePlace();
      else await conversation.goOnHere();
    } catch (error) {
      notice(error.message);
      return this.page.composer.fill(written.text, storedFiles(written.files));
    }
    this.#send(written);
  }

  #send({ text, files, edited }) {
    const parts = [...files, ...(text ? [{ type: "text", text }] : [])];
    const message = { id: newId("msg"), role: "user", parts, metadata: {}, siblings: [] };
    const body = { trigger: "submit-message", message: { id: message.id, parts }, request_id: newId("req") };
    if (edited) {
      Object.assign(body, { trigger: "edit-message", message_id: edited.id }); // its place is for the server to know
      this.#takeOutOfSight(edited);
    }
    if (this.#conversation.instance.isNew) keep(this.#conversation.instance);
    this.#outbox.add({ requestId: body.request_id, body, shown: message });
    this.page.timeline.scroll.toEnd();
  }

  /** A message that gets another version, and what follows it. It may be known by its answer alone. */
  #takeOutOfSight(message) {
    const entry = this.#entryOf(message);
    if (entry) this.#outbox.remove(entry.requestId);
    this.#conversation.cutBefore(entry ? this.#conversation.streams.get(entry.requestId)?.message?.id : message.id);
  }

  /** For the outbox: bring one entry to the server. Throws an ApiError. */
  async deliver(conversation, entry) {
    if (!conversation.instance.id) await this.#create(conversation, entry);
    const answer = await this.page.api.submitTurn(conversation.instance.id, entry.body);
    arrived(conversation.instance);
    conversation.accepted(entry.requestId, answer.id);
    this.page.sidebar.refreshSoon();
  }

  /** A conversation appears on the server with its first message. Its name was given here, so a repeat finds the same. */
  async #create(conversation, entry) {
    const { agent, name } = conversation.instance;
    const created = fromInstance(await this.page.api.createInstance(agent, name, titleFor(entry.shown)));
    conversation.update(created);
    remember(`draft.new.${agent}`, null);
    this.page.appeared(conversation);
  }

  regenerate(message) {
    const { messages } = this.#conversation;
    const answer = message.role === "user" ? messages[messages.indexOf(message) + 1] : message;
    this.#conversation.leavePlace();
    this.#conversation.cutBefore(answer?.id);
    const body = { trigger: "regenerate-message", message_id: message.id, request_id: newId("req") };
    this.#outbox.add({ requestId: body.request_id, body, shown: null });
    this.page.timeline.scroll.toEnd();
    this.page.composer.focus(); // the button that was pressed is gone
  }

  retryFailed() {
    const message = this.#conversation.messages.at(-1);
    if (message) this.regenerate(message);
  }

  edit(message) {
    this.page.composer.edit(message, textOf(message), storedFiles(message.parts));
  }

  /** Edit what was asked last. Whether there is something to edit. */
  editLast() {
    const { messages, running } = this.#conversation;
    // What has its place already may be known by its answer alone: nothing else can run.
    const isPlaced = ({ shown, state, requestId }) =>
      shown && state === "accepted" && requestId === (running?.requestId ?? requestId);
    const message = this.#outbox.entries.findLast(isPlaced)?.shown ?? messages.findLast((item) => item.role === "user");
    if (message) this.edit(message);
    return Boolean(message);
  }

  // --- on the way ---------------------------------------------------------------------------------------------------

  #entryOf(message) {
    return this.#outbox.entries.find((entry) => entry.shown?.id === message.id);
  }

  resend(message) {
    this.#outbox.retry(this.#entryOf(message).requestId);
  }

  /** It never arrived: back into the field. */
  takeBack(message) {
    this.#outbox.remove(this.#entryOf(message).requestId);
    this.page.composer.fill(textOf(message));
    this.#conversation.refresh();
  }

  /** It was refused, and no tab shows it: into the draft of a new conversation. Whether there was room for it. */
  toDraft({ agent }, { shown, error }) {
    const key = `draft.new.${agent}`;
    if (recall(key)) return false;
    remember(key, { text: textOf(shown), files: storedFiles(shown.parts) });
    notice(`A message could not be sent and is a draft again. ${error}`);
    return true;
  }

  /** It waits on the server: its turn is not to begin. */
  async unqueue(message) {
    const conversation = this.#conversation;
    this.page.composer.focus();
    try {
      const turn = message.turn ?? (await this.#turnOf(conversation, message));
      if (turn) await this.page.api.cancelTurn(turn.id);
    } catch (error) {
      notice(error.message);
    }
    conversation.refresh();
  }

  /** The line tells of a waiting message without its turn. */
  async #turnOf(conversation, message) {
    const page = await this.page.api.messages(conversation.instance.id, { limit: 1 });
    return page.queued.find((item) => item.id === message.id)?.turn;
  }
}
