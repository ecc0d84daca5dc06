// What follows from the state of the shown conversation: its line to the server, what is said aloud, and the marks of the list.

import { effect, untracked } from "@preact/signals-core";
import { ANSWER, begin, pending } from "../lib/busy.ts";
import { newId } from "../lib/ids.ts";
import { ownZone } from "../lib/own_zone.ts";
import { t } from "../lib/i18n.ts";
import { AgentSocket } from "../net/socket.ts";
import type { App } from "./app.ts";
import type { Conversation } from "./conversation.ts";
import type { Delegated } from "./delegated.ts";
import { isOwn, pathOf } from "./instances.ts";
import { openQuestions } from "./runs.ts";

export class Following {
  #app: App;
  #conversation: Conversation;
  #stops: (() => void)[];
  #saidRecovering = false;
  #endAnswer: (() => void) | null = null;

  constructor(app: App, conversation: Conversation) {
    this.#app = app;
    this.#conversation = conversation;
    this.#stops = this.#listen();
  }

  /** Another conversation is shown. */
  stop(): void {
    this.#stops.forEach((stop) => stop());
    this.#endAnswer?.();
  }

  #listen(): (() => void)[] {
    const { approvals, conversations, histories, list, people } = this.#app;
    const conversation = this.#conversation;
    const { events } = conversation;
    events.on("moved", ({ how }) => how === "back" && this.#app.place.cameBack(conversation));
    events.on("switched", () => histories.refresh());
    events.on("joined", () => list.refreshSoon(800)); // what changed since the list was read reached no tab
    events.on("presence", (sign) => people.noticed(sign));
    events.on("people", () => people.read(conversation.instance.id));
    events.on("projects", () => list.lookForProjects());
    events.on("listed", ({ id, ...change }) => {
      conversations.patch(id, change);
      if (change.waitingCount !== undefined) approvals.refreshSoon();
    });
    let runs: Promise<Delegated> | null = null;
    events.on("run", (frame) => {
      runs ??= pending(import("./delegated.ts")).then(({ openDelegated }) =>
        openDelegated(this.#app.api, conversation)
      );
      runs.then((found) => found.take(frame), () => runs = null); // they come again with the next line
    });
    events.on("spoken-end", ({ outcome }) => this.#onEnd(outcome));
    return [
      effect(() => {
        void conversation.version;
        untracked(() => this.#onStatus());
      }),
      effect(() => this.#speak()),
    ];
  }

  /** Open its line to the server. */
  attach(): void {
    const { boot, connection, place } = this.#app;
    const conversation = this.#conversation;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const path = `${boot.urls.agents}${pathOf(conversation.instance)}`;
    const query = new URLSearchParams({ _list: "1", _pk: newId("tab"), timeZone: ownZone() });
    if (!isOwn(conversation.instance)) query.set("instance", conversation.instance.id);
    const socket = new AgentSocket(`${scheme}//${location.host}${path}?${query}`);
    socket.on("open", () => conversation === place.conversation && place.outbox.flush());
    socket.on("dead", () => conversation === place.conversation && place.outbox.renew());
    conversation.attach(socket);
    if (conversation === place.conversation) connection.watch(socket);
  }

  #onStatus(): void {
    const { announcer, list, undoing } = this.#app;
    const conversation = this.#conversation;
    if (conversation.isRecovering && !this.#saidRecovering) announcer.say(t("status.recovering-short"));
    this.#saidRecovering = conversation.isRecovering;
    const { instance: { id }, running } = conversation;
    if (running) undoing.forget();
    if (running) this.#endAnswer ??= begin(ANSWER);
    else this.#endAnswer = this.#endAnswer?.() ?? null;
    if (id) list.patch(id, { isRunning: Boolean(running) });
  }

  /** Follows the answer that is being written, as far as it has come. */
  #speak(): void {
    const conversation = this.#conversation;
    void conversation.version;
    const message = conversation.running?.message;
    if (!message) return;
    void conversation.revision(message.id);
    const at = message.parts.findLastIndex((part) => part.type === "text");
    const part = message.parts[at];
    if (message.isLive && part?.type === "text") {
      untracked(() => this.#app.speaker.follow(`${message.id} ${at}`, part.text));
    }
  }

  #onEnd(outcome: string): void {
    const { list, speaker } = this.#app;
    const conversation = this.#conversation;
    const asks = openQuestions(conversation).length > 0;
    const said: Record<string, string> = {
      completed: asks ? t("status.asks-approval") : t("status.answer-complete"),
      aborted: t("status.stopped"),
      error: t("status.answer-failed", { reason: conversation.failed?.error ?? "" }).trim(),
    };
    speaker.finish(said[outcome] ?? "");
    list.refreshSoon(800);
    this.markSeen();
  }

  /** The person has seen what is in it. */
  markSeen(): void {
    const { id, role } = this.#conversation.instance;
    if (id && role === "owner" && document.visibilityState === "visible") {
      this.#app.api.changeInstance(id, { seen: true }).catch(() => {});
    }
  }
}
