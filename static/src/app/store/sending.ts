// What is sent: a new message, another version of one, another answer; and what can be taken back on the way. All of it goes
// through the outbox, so that nothing is lost and nothing is sent twice.

import { newId } from "../lib/ids.ts";
import { recall, remember } from "../lib/storage.ts";
import { t } from "../lib/i18n.ts";
import type { App } from "./app.ts";
import type { Written } from "./composer.ts";
import type { Conversation } from "./conversation.ts";
import { fromInstance } from "./instances.ts";
import { uploadKept } from "./kept_uploads.ts";
import type { Rewrite } from "./outbox.ts";
import { PAUSED } from "./status.ts";
import { textOf, writtenOf } from "./text_of.ts";
import { titleFor } from "./titles.ts";
import type { FilePart, Instance, Json, Message, OutboxEntry, Part, StoredFile } from "./types.ts";
import { arrived, keep } from "./unsent.ts";

/** File parts as the composer keeps them. */
const storedFiles = (parts: Part[]): StoredFile[] =>
  parts.filter((part): part is FilePart => part.type === "file").map((part) => ({
    url: part.url,
    media_type: part.mediaType ?? "",
    name: part.filename ?? "file",
    byte_size: part.byteSize ?? 0,
  }));

const partsOf = (text: string, files: readonly FilePart[]): Part[] => [
  ...files,
  ...(text ? [{ type: "text" as const, text }] : []),
];

/** A conversation as far as delivering needs it: one that is shown, or one whose tab is gone. */
export type Destination = Pick<Conversation, "instance" | "accepted" | "update">;

type Parts = Pick<
  App,
  "api" | "composer" | "connection" | "conversation" | "list" | "notices" | "outbox" | "place" | "threads"
>;

export class Sending {
  #app: Parts;

  constructor(app: Parts) {
    this.#app = app;
  }

  async send(written: Written): Promise<void> {
    const { conversation, composer, notices } = this.#app;
    const { edited } = written;
    if (edited?.waiting) return this.#rewrite(written, edited.waiting);
    if (this.#app.threads.keeps(conversation.instance)) return this.#begin(written);
    try {
      // What is written is written to what one reads: that branch goes on. An edit names its place by itself.
      if (edited && !conversation.place?.isForeign) conversation.leavePlace();
      else await conversation.goOnHere();
    } catch (error) {
      notices.fail(error);
      return composer.fill(written.text, storedFiles(written.files));
    }
    this.#send(written);
  }

  /** A message to an agent that keeps threads begins one. */
  async #begin(written: Written): Promise<void> {
    const { composer, notices, threads } = this.#app;
    try {
      await threads.begin(titleFor({ parts: partsOf(written.text, written.files) }));
    } catch (error) {
      notices.fail(error);
      return composer.fill(written.text, storedFiles(written.files));
    }
    this.#send(written);
  }

  #send({ text, files, edited, delivery }: Written): void {
    const { conversation, outbox } = this.#app;
    const parts = partsOf(text, files);
    const message: Message = { ...blankMessage(newId("msg")), parts };
    const requestId = newId("req");
    const body = {
      trigger: "submit-message",
      message: { id: message.id, parts: parts as unknown as Json },
      request_id: requestId,
    };
    if (delivery) Object.assign(body, { delivery });
    if (edited) {
      Object.assign(body, { trigger: "edit-message", message_id: edited.id }); // its place is for the server to know
      this.#takeOutOfSight(edited);
    }
    if (conversation.instance.isNew) keep(conversation.instance);
    outbox.add({ requestId, body, shown: message });
    this.#app.connection.probe();
    this.#app.place.scrollToEnd();
  }

  /** A message that gets another version, and what follows it. It may be known by its answer alone. */
  #takeOutOfSight(message: Message): void {
    const { conversation, outbox } = this.#app;
    const entry = this.#entryOf(message);
    if (entry) outbox.remove(entry.requestId);
    const first = entry ? conversation.streams.get(entry.requestId)?.message?.id : message.id;
    if (first) conversation.cutBefore(first);
  }

  /** For the outbox: bring one entry to the server. Errors: `ApiError`. */
  async deliver(conversation: Destination, entry: OutboxEntry, signal: AbortSignal, rewrite: Rewrite): Promise<void> {
    const { api } = this.#app;
    const body = await uploadKept(api, entry, rewrite, signal);
    if (!conversation.instance.id) await this.#create(conversation, entry);
    const answer = await api.submitTurn(conversation.instance.id, body, signal) as { id: string };
    arrived(conversation.instance);
    conversation.accepted(entry.requestId, answer.id);
    this.#app.list.refreshSoon();
  }

  /** A conversation appears on the server with its first message. Its name was given here, so a repeat finds the same. */
  async #create(conversation: Destination, entry: OutboxEntry): Promise<void> {
    const { agent, name, modelChoice, isTemporary, projectId } = conversation.instance;
    const title = entry.shown ? titleFor(entry.shown) : "";
    const create = (project: string | null) =>
      this.#app.api.createInstance(agent, name, title, modelChoice, isTemporary, project);
    const made = await create(projectId).catch((error) => {
      if (!projectId || error.code !== "project_not_found") throw error;
      return create(null); // it was removed meanwhile: what was written matters more
    });
    const created = fromInstance(made);
    conversation.update({ ...created, isNew: false });
    remember(`draft.new.${agent}`, null);
    this.#app.place.appeared(conversation);
  }

  regenerate(message: Message): void {
    const { conversation, outbox, composer } = this.#app;
    const { messages } = conversation;
    const at = messages.indexOf(message); // one that waits for a place has no answer
    const answer = message.role === "user" ? at >= 0 && messages[at + 1] : message;
    conversation.leavePlace();
    if (answer) conversation.cutBefore(answer.id);
    const requestId = newId("req");
    const body = { trigger: "regenerate-message", message_id: message.id, request_id: requestId };
    outbox.add({ requestId, body, shown: null });
    this.#app.place.scrollToEnd();
    composer.focus(); // the button that was pressed is gone
  }

  async retryFailed(): Promise<void> {
    const { api, composer, conversation, notices } = this.#app;
    const { messages, queued, failed } = conversation;
    if (failed?.code === PAUSED && failed.turnId) {
      composer.focus(); // the button goes away
      await api.resumeTurn(failed.turnId).catch((error) => notices.fail(error));
      return conversation.refresh(); // it may have gone on elsewhere
    }
    // What was stopped before it began waits for a place: the last of these is answered with the others before it.
    const message = queued.findLast(({ isStopped }) => isStopped) ?? messages.at(-1);
    if (message) this.regenerate(message);
  }

  edit(message: Message): void {
    this.#app.composer.edit(message, writtenOf(message), storedFiles(message.parts));
  }

  /** Edit what was asked last. Returns whether there is something to edit. */
  editLast(): boolean {
    const { conversation: { messages, running }, outbox } = this.#app;
    // What has its place already may be known by its answer alone: nothing else can run.
    const isPlaced = ({ shown, state, requestId }: OutboxEntry) =>
      shown && state === "accepted" && requestId === (running?.requestId ?? requestId);
    const message = outbox.entries.findLast(isPlaced)?.shown ?? messages.findLast((item) => item.role === "user");
    if (message) this.edit(message);
    return Boolean(message);
  }

  // --- on the way -----------------------------------------------------------------------------------------------------

  #entryOf(message: Message): OutboxEntry | undefined {
    return this.#app.outbox.entries.find((entry) => entry.shown?.id === message.id);
  }

  resend(message: Message): void {
    const entry = this.#entryOf(message);
    if (entry) this.#app.outbox.retry(entry.requestId);
  }

  /** It never arrived: back into the field. */
  takeBack(message: Message): void {
    const entry = this.#entryOf(message);
    if (entry) this.#app.outbox.remove(entry.requestId);
    this.#app.composer.fill(writtenOf(message), storedFiles(message.parts));
    this.#app.conversation.refresh();
  }

  /** It was refused, and no tab shows it: into the draft of a new conversation. Returns whether there was room for it. */
  toDraft({ agent }: Pick<Instance, "agent">, { shown, error }: OutboxEntry): boolean {
    const key = `draft.new.${agent}`;
    if (recall(key) || !shown) return false;
    remember(key, { text: textOf(shown), files: storedFiles(shown.parts) });
    this.#app.notices.show(t("composer.draft-again", { reason: error }));
    return true;
  }

  /** It waits on the server: its turn is not to begin. */
  async unqueue(message: Message): Promise<void> {
    const { conversation, composer, api, notices } = this.#app;
    composer.focus();
    try {
      const turnId = message.turn?.id ??
        (await this.#queued(conversation)).find(({ id }) => id === message.id)?.turn?.id;
      if (turnId) await api.cancelTurn(turnId);
    } catch (error) {
      notices.fail(error);
    }
    conversation.refresh();
  }

  /** It waits on the server: its words go into the field, and from there back to its place. */
  async editWaiting(message: Message): Promise<void> {
    const { conversation, composer, notices } = this.#app;
    try {
      const found = (await this.#waiting(conversation)).find(({ id }) => id === message.id);
      if (!found?.turn) return void conversation.refresh(); // it has its turn by now
      const { turn, version, parts } = found;
      const edited = { ...message, parts, waiting: { turnId: turn.id, version } };
      composer.edit(edited, textOf(edited), storedFiles(parts));
    } catch (error) {
      notices.fail(error);
    }
  }

  async #rewrite({ text, files }: Written, { turnId, version }: NonNullable<Message["waiting"]>): Promise<void> {
    const { conversation, composer, api, notices } = this.#app;
    try {
      await api.editWaiting(turnId, {
        message: { parts: partsOf(text, files) as unknown as Record<string, unknown>[] },
        version,
      });
    } catch (error) {
      notices.fail(error);
      composer.fill(text, storedFiles(files)); // nothing that was written is lost
    }
    conversation.refresh();
  }

  /** It waits on the server: have it come before or after others that wait. `by`: how many places, down or up. */
  async move(message: Message, by: number): Promise<void> {
    const { conversation, api, notices } = this.#app;
    try {
      const turns = (await this.#waiting(conversation)).map(({ id, turn }) => ({ id, turnId: turn!.id }));
      const at = turns.findIndex(({ id }) => id === message.id);
      const to = Math.min(Math.max(at + by, 0), turns.length - 1);
      if (at < 0 || to === at) return;
      turns.splice(to, 0, ...turns.splice(at, 1));
      await api.orderQueue(conversation.instance.id, turns.map(({ turnId }) => turnId));
    } catch (error) {
      notices.fail(error);
    }
    await conversation.refresh();
  }

  /** What waits on the server, in order, with its turns: frames give a waiting message without. */
  async #waiting(conversation: Conversation): Promise<Waiting[]> {
    const began = conversation.running?.turnId;
    return (await this.#queued(conversation)).filter(({ turn }) => turn!.id !== began);
  }

  /** The same with the one whose turn is the next to begin. */
  async #queued(conversation: Conversation): Promise<Waiting[]> {
    const page = await this.#app.api.messages(conversation.instance.id, { limit: 1 }) as unknown as {
      queued: Waiting[];
    };
    return page.queued.filter(({ turn }) => turn && !turn.finished_at);
  }
}

type Waiting = Pick<Message, "id" | "parts" | "turn"> & { version: number };

/** A message of the person's without anything in it yet. */
export const blankMessage = (id: string): Message => ({
  id,
  role: "user",
  parts: [],
  metadata: {},
  siblings: [],
  createdAt: null,
  turn: null,
  toolMs: {},
  isLive: false,
  isStopped: false,
});
