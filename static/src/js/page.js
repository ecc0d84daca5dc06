// The page as one: opens conversations, wires the parts to each other, keeps the address in step.

import { AgentSocket } from "../app/net/socket.ts";
import { Branching } from "./branching.js";
import { Conversation } from "../app/store/conversation.ts";
import { Deciding } from "./deciding.js";
import { Outbox } from "../app/store/outbox.ts";
import { Sending } from "./sending.js";
import { Summaries } from "../app/store/summaries.ts";
import { keptInHistory, Unsent } from "../app/store/unsent.ts";
import { openQuestions } from "../app/store/runs.ts";
import { newId } from "../app/lib/ids.ts";
import { showReadOnly } from "./read_only.js";
import { askTitle, confirmDelete, notice } from "./dialogs.js";
import { fromInstance, newInstance, pathOf, titleOf } from "../app/store/instances.ts";
import { setText } from "./dom.js";
import { copyText } from "./copying.js";
import { textOf } from "../app/store/text_of.ts";

const WIDE = matchMedia("(min-width: 760px)");

/** The message that an address leads to: `?at=` and, in a history that is not the current one, `&in=`. */
function placeOf(url) {
  const query = new URLSearchParams(url.search);
  return query.get("at") ? { messageId: query.get("at"), sessionId: query.get("in") ?? "" } : null;
}

const queryOf = (
  place,
) => (place
  ? `?${new URLSearchParams({ at: place.messageId, ...(place.sessionId ? { in: place.sessionId } : {}) })}`
  : "");

export class Page {
  /** `parts`: the page's fixed parts, by the names below, made by `main.js`. */
  constructor(boot, api, parts) {
    this.boot = boot;
    this.api = api;
    this.composer = parts.composer;
    this.timeline = parts.timeline;
    this.sidebar = parts.sidebar;
    this.find = parts.find;
    this.placeBar = parts.placeBar;
    this.sessions = parts.sessions;
    this.panel = parts.panel;
    this.connection = parts.connection;
    this.speaker = parts.speaker;
    this.elements = parts.elements;
    this.base = boot.urls.home;
    this.branching = new Branching(this);
    this.sending = new Sending(this);
    this.deciding = new Deciding(this);
    this.unsent = new Unsent({
      deliver: (conversation, entry) => this.sending.deliver(conversation, entry),
      refused: (instance, entry) => this.sending.toDraft(instance, entry),
    });
    addEventListener("popstate", () => this.route(location, false));
  }

  /** First show: what the server has embedded, no request. */
  start() {
    const { boot } = this;
    const wantsList = boot.page === "list" && !WIDE.matches;
    document.body.dataset.view = wantsList ? "list" : "conversation";
    if (boot.instance) {
      this.show(fromInstance(boot.instance), boot.messages, placeOf(location));
      if (boot.page === "list" && !wantsList) history.replaceState(null, "", this.address(boot.instance.id));
    } else this.showNew(new URLSearchParams(location.search).get("agent"));
  }

  address(id) {
    return `${this.base}c/${encodeURIComponent(id)}`;
  }

  route(url, push = true) {
    const path = url.pathname.slice(this.base.length);
    const id = /^c\/([^/]+)\/?$/.exec(path)?.[1];
    if (!id) return this.showList();
    if (id === "new") return this.newConversation(push);
    return this.open(decodeURIComponent(id), push, placeOf(url));
  }

  showList() {
    document.body.dataset.view = "list";
  }

  /** `place`: {messageId, sessionId} of the message to open it at. */
  async open(id, push = true, place = null, keepsFocus = false) {
    document.body.dataset.view = "conversation";
    if (push) history.pushState(null, "", this.address(id) + queryOf(place));
    if (this.conversation?.instance.id === id) {
      return place ? this.goTo(place, keepsFocus) : this.conversation.backToNewest();
    }
    let instance = this.sidebar.find(id);
    if (!instance) {
      try {
        instance = fromInstance(await this.api.instance(id));
      } catch (error) {
        notice(error.status === 404 ? "There is no such conversation." : error.message);
        return this.newConversation(false);
      }
    }
    this.show(instance, null, place);
  }

  /** Read around a message, bring it into sight and mark it. */
  async goTo({ messageId, sessionId }, keepsFocus = false) {
    const { conversation } = this;
    try {
      await conversation.openAt(messageId, sessionId);
    } catch (error) {
      notice(error.status === 404 ? "This message is not there any more." : error.message);
      if (!conversation.isLoaded) conversation.refresh();
      return;
    }
    if (conversation !== this.conversation) return;
    const element = this.timeline.reveal(messageId);
    if (element && !keepsFocus) element.focus({ preventScroll: true });
    if (conversation.place) conversation.refreshSoon(); // whether something runs
  }

  newConversation(push = true) {
    document.body.dataset.view = "conversation";
    if (push) history.pushState(null, "", `${this.base}c/new`);
    this.showNew(null);
  }

  /** A new conversation: each tab generates a name, unless a message that it began here was not sent yet. */
  showNew(agent) {
    const begun = keptInHistory() ?? { agent: agent || this.boot.agents[0]?.name || "assistant", name: newId("cnv") };
    this.show(newInstance(begun.agent, begun.name), null);
  }

  show(instance, page, place = null) {
    this.summaries?.close();
    this.conversation?.close();
    this.outbox?.close();
    this.connection.watch(null);
    const conversation = new Conversation(this.api, instance, page);
    this.conversation = conversation;
    this.outbox = new Outbox(pathOf(instance), (entry) => this.sending.deliver(conversation, entry));
    conversation.on("status", () => this.#onStatus());
    conversation.on("messages", () => this.#onMessages());
    conversation.on("place", (detail) => this.#onPlace(detail));
    conversation.on("switched", () => this.sessions.refresh());
    conversation.on("message", (id) => this.#speak(id));
    conversation.on("titled", ({ id, title }) => this.#onTitled(id, title));
    conversation.on("spoken-end", ({ outcome }) => this.#onEnd(outcome));
    this.outbox.on("change", () => this.#onStatus());
    this.summaries = new Summaries(this.api, conversation, (text, how) => this.#say(text, how));
    this.timeline.show(conversation, this.outbox, this.summaries);
    this.panel.show(conversation);
    showReadOnly(this.elements.readOnly, instance);
    this.unsent.take(instance);
    this.composer.open(instance.isNew ? `new.${instance.agent}` : instance.id);
    this.sidebar.setCurrent(instance.id);
    this.#drawTitle();
    if (!instance.isNew && !instance.isReadOnly) this.#attach(conversation); // a conversation that cannot continue needs no socket
    this.#onStatus();
    this.#onMessages();
    this.placeBar.draw(conversation);
    this.#showHead();
    this.#markSeen();
    if (document.body.dataset.view === "conversation") this.composer.focus();
    if (place) this.goTo(place);
    else if (!instance.isNew && !page) conversation.refresh();
  }

  /** What the head offers for this conversation, once it is on the server. */
  #showHead() {
    const { instance } = this.conversation;
    this.find.show(instance.id);
    this.sessions.show(this.conversation);
    this.elements.more.hidden = !instance.id;
  }

  #attach(conversation) {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new AgentSocket(
      `${scheme}//${location.host}${this.boot.urls.agents}${pathOf(conversation.instance)}?_list=1&_pk=${newId("tab")}`,
    );
    socket.on("open", () => this.outbox?.flush());
    conversation.attach(socket);
    if (conversation === this.conversation) this.connection.watch(socket);
  }

  /** A new conversation is on the server now. */
  appeared(conversation) {
    const { instance } = conversation;
    if (conversation !== this.conversation) return;
    history.replaceState(null, "", this.address(instance.id));
    this.composer.rename(instance.id);
    this.sidebar.put({ ...instance });
    this.sidebar.setCurrent(instance.id);
    this.#drawTitle();
    this.#showHead();
    this.panel.show(conversation);
    this.#attach(conversation);
  }

  /** What a button under a message, or in the status line, asks for. */
  act(name, message, detail) {
    const actions = {
      copy: () => this.copy(textOf(message), document.activeElement),
      regenerate: () => this.sending.regenerate(message),
      edit: () => this.sending.edit(message),
      editAnswer: () => this.branching.editAnswer(message),
      fork: () => this.branching.fork(message),
      sibling: () => this.#selectSibling(detail),
      resend: () => this.sending.resend(message),
      takeBack: () => this.sending.takeBack(message),
      unqueue: () => this.sending.unqueue(message),
      retryFailed: () => this.sending.retryFailed(),
      reload: () => this.conversation.refresh(),
      approve: () => this.deciding.decide(detail, true),
      deny: () => this.deciding.decide(detail, false),
      skip: () => this.deciding.skip(detail),
      approveAll: () => this.deciding.decideAll(true),
      denyAll: () => this.deciding.decideAll(false),
      rewordSummary: () => this.summaries.reword(detail.id, detail.text),
      undoSummary: () => this.summaries.undo(detail.id),
      compactAgain: () => this.summaries.again(),
      dismissCompaction: () => this.summaries.dismiss(),
      usage: () => this.api.usage(this.conversation.instance.id),
    };
    return actions[name]?.();
  }

  async #selectSibling(id) {
    const name = document.activeElement?.getAttribute("aria-label");
    try {
      await this.conversation.selectSibling(id);
      this.timeline.focusSwitch(id, name);
    } catch (error) {
      notice(error.message);
    }
  }

  stop() {
    this.conversation.stop().catch((error) => notice(error.message));
  }

  /** A command of the message field. There is one so far. */
  command({ rest }) {
    this.summaries.ask(rest);
  }

  #say(text, { isNotice = false } = {}) {
    if (isNotice) notice(text);
    else this.speaker.say(text);
  }

  async copy(text, button) {
    if (await copyText(text, button)) this.speaker.say("Copied.");
  }

  // --- what follows from the conversation's state -------------------------------------------------------------------

  #onPlace(detail) {
    this.placeBar.draw(this.conversation);
    const { id } = this.conversation.instance;
    if (id && detail?.isBack && placeOf(location)) history.replaceState(null, "", this.address(id));
  }

  #onStatus() {
    this.composer.setRunning(Boolean(this.conversation.running));
    if (this.conversation.isRecovering && !this.saidRecovering) this.speaker.say("Picking up after an interruption.");
    this.saidRecovering = this.conversation.isRecovering;
    const id = this.conversation.instance.id;
    if (id) this.sidebar.patch(id, { isRunning: Boolean(this.conversation.running) });
  }

  #onMessages() {
    const isEmpty = !this.conversation.messages.length && !this.conversation.queued.length &&
      !this.outbox.entries.some((entry) => entry.shown);
    this.elements.welcome.hidden = !(isEmpty && this.conversation.isLoaded);
  }

  #speak(id) {
    const message = this.conversation.messages.find((item) => item.id === id);
    const at = message?.parts.findLastIndex((part) => part.type === "text") ?? -1;
    if (message?.isLive && at >= 0) this.speaker.follow(`${id} ${at}`, message.parts[at].text);
  }

  #onEnd(outcome) {
    const failure = `The answer failed. ${this.conversation.failed?.error ?? ""}`.trim();
    const asks = openQuestions(this.conversation).length > 0;
    this.speaker.finish(
      {
        completed: asks ? "The assistant asks for your approval." : "Answer complete.",
        aborted: "Stopped.",
        error: failure,
      }[outcome] ?? "",
    );
    this.sidebar.refreshSoon(800);
    this.#markSeen();
  }

  #markSeen() {
    const { id } = this.conversation.instance;
    if (id && document.visibilityState === "visible") this.api.changeInstance(id, { seen: true }).catch(() => {});
  }

  openHit({ instanceId, sessionId, messageId, isElsewhere }, keepsFocus = false) {
    return this.open(instanceId, true, { messageId, sessionId: isElsewhere ? sessionId : "" }, keepsFocus);
  }

  /** A conversation was pinned, put away or taken back. */
  onChanged(item) {
    this.sidebar.changed(item);
    if (this.conversation.instance.id !== item.id) return;
    this.conversation.update({ isPinned: item.isPinned, isArchived: item.isArchived });
    this.placeBar.draw(this.conversation);
  }

  onListChanged() {
    const id = this.conversation?.instance.id;
    const item = id && this.sidebar.find(id);
    if (item) {
      this.conversation.update({
        title: item.title,
        isPinned: item.isPinned,
        isArchived: item.isArchived,
      });
    }
    this.#drawTitle();
    this.placeBar.draw(this.conversation);
  }

  #onTitled(id, title) {
    this.sidebar.patch(id, { title });
    this.#drawTitle();
  }

  #drawTitle() {
    const title = titleOf(this.conversation?.instance);
    setText(this.elements.title, title);
    this.elements.title.title = title;
    document.title = `${title} · ${this.boot.product}`;
  }

  async rename(item) {
    const title = await askTitle(item.title);
    if (title === null) return;
    try {
      await this.api.changeInstance(item.id, { title });
      this.sidebar.patch(item.id, { title });
      this.onListChanged();
    } catch (error) {
      notice(error.message);
    }
  }

  async remove(item) {
    if (!(await confirmDelete(titleOf(item)))) return;
    try {
      await this.api.deleteInstance(item.id);
      this.sidebar.drop(item.id);
      if (this.conversation.instance.id === item.id) this.newConversation();
      else this.sidebar.focusList();
    } catch (error) {
      notice(error.message);
    }
  }
}
