// The page as one: which conversation is shown, and the parts that show it and act on it. It has no document: views follow it
// and its parts, and everything that a person does is a method of one of them.

import { effect, untracked } from "@preact/signals-core";
import { ANSWER, begin, pending } from "../lib/busy.ts";
import { newId } from "../lib/ids.ts";
import { copyText } from "../lib/clipboard.ts";
import { ownZone } from "../lib/own_zone.ts";
import { recall, remember } from "../lib/storage.ts";
import { Speaker } from "../lib/speech.ts";
import { Store } from "../lib/store.ts";
import { t } from "../lib/i18n.ts";
import { Api } from "../net/api.ts";
import { AgentSocket } from "../net/socket.ts";
import { Approvals } from "./approvals.ts";
import type { Boot } from "./boot.ts";
import { Branching } from "./branching.ts";
import { Composer } from "./composer.ts";
import { Connection } from "./connection.ts";
import { Conversation } from "./conversation.ts";
import { Conversations } from "./conversations.ts";
import { Deciding } from "./deciding.ts";
import type { Delegated } from "./delegated.ts";
import { Dialogs, type DialogViews } from "./dialogs.ts";
import { FilesPlace } from "./files_place.ts";
import { Histories } from "./histories.ts";
import { fromInstance, isOwn, pathOf } from "./instances.ts";
import { Limits } from "./limits.ts";
import { ConversationList } from "./list.ts";
import { Models } from "./models.ts";
import { Announcer, Notices } from "./notices.ts";
import { Outbox } from "./outbox.ts";
import { PanelState } from "./panel.ts";
import { People } from "./people.ts";
import { type MessagePlace, placeOf, type Route, Router } from "./router.ts";
import { openQuestions } from "./runs.ts";
import { Search } from "./search.ts";
import { Selection } from "./selection.ts";
import { type Destination, Sending } from "./sending.ts";
import { Summaries } from "./summaries.ts";
import { ThreadPlace } from "./thread_place.ts";
import { Undoing } from "./undoing.ts";
import type { RawPage } from "../net/types.ts";
import type { Agent, Instance } from "./types.ts";
import { keptInHistory, Unsent } from "./unsent.ts";

const WIDE = matchMedia("(min-width: 760px)"); // beneath, one column at a time
const HAS_DRAWER = matchMedia("(min-width: 760px) and (max-width: 899px)"); // the list lies over the conversation

const PRESENCE_LOOK_MS = 5_000;

/** Where the reader is to be taken, for the timeline. `query`: words to mark in the message; `keepsFocus`: the focus stays. */
export interface Reveal {
  messageId: string;
  query: string;
  keepsFocus: boolean;
}

export class App extends Store {
  readonly boot: Boot;
  /** The agents that people are offered. Others work for these; their conversations are opened from there. */
  readonly agents: readonly Agent[];
  readonly api: Api;
  readonly router: Router;
  readonly notices = new Notices();
  readonly limits = new Limits();
  readonly announcer = new Announcer();
  readonly dialogs: Dialogs;
  readonly connection = new Connection();
  readonly list: ConversationList;
  readonly search: Search;
  readonly selection: Selection;
  readonly find: Search;
  readonly composer: Composer;
  readonly panel: PanelState;
  readonly files = new FilesPlace();
  readonly histories: Histories;
  readonly models: Models;
  readonly approvals: Approvals;
  readonly people: People;
  readonly sending = new Sending(this);
  readonly branching = new Branching(this);
  readonly conversations = new Conversations(this);
  readonly threads = new ThreadPlace(this);
  readonly deciding: Deciding;
  readonly undoing: Undoing;
  readonly speaker: Speaker;
  /** What the narrow page shows, and the wide one beside the list. */
  view: "list" | "conversation" | "approvals" | "settings" | "work" = "conversation";
  /** The section of the settings that an address names; "" for none. */
  section = "";
  /** The list is put away on a wide page. */
  isSidebarHidden = HAS_DRAWER.matches || recall("sidebar-hidden") === true;
  /** Grows with each wish that the search has the focus. */
  searchWishes = 0;
  /** The search within the conversation is open. */
  isFinding = false;
  conversation!: Conversation;
  outbox!: Outbox;
  summaries!: Summaries;
  /** Where the timeline is to take the reader; a new object for each wish. */
  reveal: Reveal | null = null;
  /** Grows with each wish to see the end of the conversation. */
  endWishes = 0;
  /** How the person is called on this page. */
  personName: string;
  #sectionTitle = "";
  #unsent: Unsent;
  #saidRecovering = false;
  #unfollow = () => {};
  #endAnswer: (() => void) | null = null; // of the shown conversation

  /** `dialogs` loads the views of what is asked. */
  constructor(boot: Boot, dialogs: () => Promise<DialogViews>) {
    super();
    this.boot = boot;
    this.dialogs = new Dialogs(dialogs);
    this.personName = boot.name || boot.user;
    this.agents = boot.agents.filter((agent) => agent.is_listed);
    this.api = new Api(boot.urls.api);
    this.router = new Router(boot.urls.home, (route) => this.show(route));
    this.list = new ConversationList(this.api, () => this.#onListRead());
    this.search = new Search(this.api);
    this.selection = new Selection(this);
    this.find = new Search(this.api, () => ({ instance: this.conversation.instance.id }));
    this.composer = new Composer(this.api, boot.files, {
      send: (written) => this.sending.send(written),
      command: ({ name, rest }) => {
        if (name === "undo") this.undoing.ask();
        else if (name === "redo") this.undoing.redo();
        else if (name === "title") this.conversations.retitle(this.conversation.instance, rest);
        else this.summaries.ask(rest);
      },
    });
    this.panel = new PanelState(WIDE.matches);
    this.histories = new Histories(this.api, this.notices.fail);
    this.models = new Models(this.api);
    this.approvals = new Approvals(this.api);
    this.people = new People(this.api, (id, { role, isShared }) => {
      const isReadOnly = role === "reader" || this.conversation.instance.isRetired;
      this.conversations.patch(id, { role, isShared, isReadOnly });
    });
    this.deciding = new Deciding(this.api, (text) => this.notices.show(text));
    this.undoing = new Undoing(this);
    this.speaker = new Speaker((text) => this.announcer.say(text));
    this.#unsent = new Unsent({
      deliver: (conversation, ...entry) => this.sending.deliver(conversation, ...entry),
      refused: (instance, entry) => this.sending.toDraft(instance, entry),
    });
  }

  /** First show: what the server has embedded, no request. */
  start(): void {
    const { boot } = this;
    this.list.start(boot.instances);
    const route = this.router.read(new URL(location.href));
    const wantsList = boot.page === "list" && !WIDE.matches;
    if (boot.instance) {
      this.#showConversation(fromInstance(boot.instance), boot.messages, placeOf(location));
      const isNewest = boot.page === "list" && !wantsList && route.page === "list";
      if (isNewest) this.router.replace(this.#routeOf(boot.instance.id));
    } else this.#showNew(new URLSearchParams(location.search).get("agent") ?? "");
    this.approvals.start(boot.approvals, boot.page === "approvals");
    setInterval(() => this.sayHere(false), PRESENCE_LOOK_MS);
    if (boot.page === "settings" || boot.page === "work") return this.show(this.router.read(new URL(location.href)));
    this.#setView(boot.page === "approvals" ? "approvals" : wantsList ? "list" : "conversation");
    if (route.page === "thread") this.threads.open(route.id);
  }

  /** The agent of a conversation; one that is served no more has its name only. */
  agentOf = (instance: Pick<Instance, "agent">): Agent =>
    this.boot.agents.find((agent) => agent.name === instance.agent) ?? {
      name: instance.agent,
      title: instance.agent,
      description: "",
      icon: "",
      icon_url: "",
      suggestions: [],
      is_listed: false,
      delivery: "queue",
      commands: [],
      thread_agent: null,
    };

  /** Name of the agent that a conversation was begun with last, here or in another tab; the first one before that. */
  get lastAgent(): string {
    const last = recall("agent");
    return (this.agents.find((agent) => agent.name === last) ?? this.agents[0])?.name ?? "assistant";
  }

  // --- where one is -----------------------------------------------------------------------------------------------------

  /** Show what an address names; the address itself is as it should be. */
  show(route: Route): void {
    if (route.page === "list") return this.#setView("list");
    if (route.page === "approvals") return this.#showApprovals();
    if (route.page === "work") return this.#setView("work");
    if (route.page === "settings") return this.#showSettings(route.section);
    if (route.page === "new") return this.#showNew(route.agent);
    if (route.page === "thread") return void this.threads.open(route.id);
    this.open(route.id, { place: route.place, isPushed: false });
  }

  showList(): void {
    this.router.push({ page: "list" });
    this.#setView("list");
    this.list.refresh();
  }

  showApprovals(): void {
    this.router.push({ page: "approvals" });
    this.#showApprovals();
  }

  /** What is at work in all conversations. */
  showWork(): void {
    this.router.push({ page: "work" });
    this.#setView("work");
  }

  /** A section of the settings; "" for the list of them, or the first one beside it. */
  showSettings(section: string): void {
    this.router.push({ page: "settings", section });
    this.#showSettings(section);
  }

  /** The person has chosen another name; "" for the one of the account. */
  callPerson(name: string): void {
    this.personName = name || this.boot.user;
    this.changed();
  }

  /** What the open section is called, for the title of the window. */
  nameSection(title: string): void {
    if (title === this.#sectionTitle) return;
    this.#sectionTitle = title;
    this.changed();
  }

  newConversation(agent = ""): void {
    this.router.push({ page: "new", agent });
    this.#showNew(agent);
  }

  /** Open a conversation, at a message where `place` names one. `query`: words of a search to mark there. */
  async open(id: string, { place = null, isPushed = true, keepsFocus = false, query = "" }: {
    place?: MessagePlace | null;
    isPushed?: boolean;
    keepsFocus?: boolean;
    query?: string;
  } = {}): Promise<void> {
    this.#setView("conversation");
    if (isPushed) this.router.push({ page: "conversation", id, place });
    if (this.conversation.instance.id === id) {
      return place ? this.#goTo(place, query, keepsFocus) : this.conversation.backToNewest();
    }
    const listed = this.list.find(id);
    let instance = listed && { ...listed, model: "" }; // lists do not say which model answers
    if (!instance) {
      try {
        instance = fromInstance(await this.api.instance(id));
      } catch (error) {
        this.notices.show(isMissing(error) ? t("conversation.missing") : (error as Error).message);
        this.router.replace({ page: "new", agent: "" });
        return this.#showNew("");
      }
    }
    this.#showConversation(instance, null, place, query);
  }

  /** Read around a message, bring it into sight and mark it. */
  async #goTo({ messageId, sessionId }: MessagePlace, query = "", keepsFocus = false): Promise<void> {
    const { conversation } = this;
    try {
      await conversation.openAt(messageId, sessionId);
    } catch (error) {
      this.notices.show(isMissing(error) ? t("message.missing") : (error as Error).message);
      if (!conversation.isLoaded) conversation.refresh();
      return;
    }
    if (conversation !== this.conversation) return;
    this.reveal = { messageId, query, keepsFocus };
    this.changed();
    if (conversation.place) conversation.refreshSoon(); // whether something runs
  }

  /** Take the reader to the newest message. */
  scrollToEnd(): void {
    this.endWishes += 1;
    this.changed();
  }

  /** Put the focus into the search of all conversations. */
  focusSearch(): void {
    if (!WIDE.matches) this.#setView("list");
    this.isSidebarHidden = false;
    this.searchWishes += 1;
    this.changed();
  }

  /** Show or hide the list beside the conversation; the browser remembers it. */
  toggleSidebar(): void {
    this.isSidebarHidden = !this.isSidebarHidden;
    if (!HAS_DRAWER.matches) remember("sidebar-hidden", this.isSidebarHidden || null);
    this.changed();
  }

  /** Show a file of the conversation in the panel. */
  showFile(path: string): void {
    this.files.open(this.conversation.instance.id, path);
    this.panel.open("files");
  }

  /** Show what turns have changed, in the panel. */
  showChanges(turnIds: readonly string[]): void {
    this.files.review(this.conversation.instance.id, turnIds);
    this.panel.open("files");
  }

  /** The list of keys. */
  showShortcuts(): void {
    this.dialogs.ask("shortcuts", {});
  }

  setFinding(isFinding: boolean): void {
    this.isFinding = isFinding;
    if (!isFinding) this.find.clear();
    this.changed();
  }

  #setView(view: App["view"]): void {
    this.view = view;
    if (HAS_DRAWER.matches) this.isSidebarHidden = view !== "list";
    this.changed();
  }

  #showApprovals(): void {
    this.approvals.refresh();
    this.#setView("approvals");
  }

  #showSettings(section: string): void {
    this.section = section;
    this.#setView("settings");
  }

  #routeOf = (id: string): Route => ({ page: "conversation", id, place: null });

  // --- the shown conversation -------------------------------------------------------------------------------------------

  /** A new conversation: each tab generates a name, unless a message that it began here was not sent yet. */
  #showNew(agent: string): void {
    const chosen = this.boot.agents.find((item) => item.name === agent);
    if (chosen?.is_listed) remember("agent", chosen.name);
    const begun = keptInHistory() ?? { agent: chosen?.name ?? this.lastAgent, name: newId("cnv") };
    this.#showConversation({ ...fromInstance({ id: "", ...begun }), isNew: true }, null);
    this.#setView("conversation");
  }

  #showConversation(
    instance: Instance,
    page: RawPage | null,
    place: MessagePlace | null = null,
    query = "",
  ): void {
    this.#unfollow();
    this.conversation?.close();
    this.summaries?.close();
    this.outbox?.close();
    this.connection.watch(null);
    const conversation = new Conversation(this.api, instance, page);
    this.conversation = conversation;
    this.outbox = new Outbox(pathOf(instance), (...entry) => this.sending.deliver(conversation, ...entry));
    this.summaries = new Summaries(this.api, conversation, (text, { isNotice = false } = {}) => {
      if (isNotice) this.notices.show(text);
      else this.announcer.say(text);
    });
    this.#listen(conversation);
    this.reveal = null;
    this.undoing?.show(instance);
    this.setFinding(false);
    this.#unsent.take(instance);
    this.composer.open(instance.isNew ? `new.${instance.agent}` : instance.id);
    this.threads.show(instance);
    this.list.setCurrent(instance.id);
    this.histories.show(conversation);
    // One that cannot continue needs no socket; who only reads sees what others say.
    if (!instance.isNew && (!instance.isReadOnly || !isOwn(instance))) this.#attach(conversation);
    this.people.show(instance);
    this.#markSeen();
    this.changed();
    this.scrollToEnd();
    if (this.view === "conversation") this.composer.focus();
    if (place) this.#goTo(place, query);
    else if (!instance.isNew && !page) conversation.refresh();
  }

  #listen(conversation: Conversation): void {
    const { events } = conversation;
    const stops = [
      effect(() => {
        void conversation.version;
        untracked(() => this.#onStatus(conversation));
      }),
      effect(() => this.#speak(conversation)),
    ];
    this.#unfollow = () => stops.forEach((stop) => stop());
    events.on("moved", ({ how }) => how === "back" && this.#onBack(conversation));
    events.on("switched", () => this.histories.refresh());
    events.on("joined", () => this.list.refreshSoon(800)); // what changed since the list was read reached no tab
    events.on("presence", (sign) => this.people.heard(sign));
    events.on("people", () => this.people.read(conversation.instance.id));
    events.on("listed", ({ id, ...change }) => {
      this.conversations.patch(id, change);
      if (change.waitingCount !== undefined) this.approvals.refreshSoon();
    });
    let runs: Promise<Delegated> | null = null;
    events.on("run", (frame) => {
      runs ??= pending(import("./delegated.ts")).then(({ openDelegated }) => openDelegated(this.api, conversation));
      runs.then((found) => found.take(frame), () => runs = null); // they come again with the next line
    });
    events.on("spoken-end", ({ outcome }) => this.#onEnd(conversation, outcome));
  }

  #attach(conversation: Conversation): void {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const path = `${this.boot.urls.agents}${pathOf(conversation.instance)}`;
    const query = new URLSearchParams({ _list: "1", _pk: newId("tab"), timeZone: ownZone() });
    if (!isOwn(conversation.instance)) query.set("instance", conversation.instance.id);
    const socket = new AgentSocket(`${scheme}//${location.host}${path}?${query}`);
    socket.on("open", () => conversation === this.conversation && this.outbox.flush());
    socket.on("dead", () => conversation === this.conversation && this.outbox.renew());
    conversation.attach(socket);
    if (conversation === this.conversation) this.connection.watch(socket);
  }

  /** A new conversation is on the server now. */
  appeared(destination: Destination): void {
    const { conversation } = this;
    if (destination !== conversation) return;
    const { instance } = conversation;
    this.router.replace(this.#routeOf(instance.id));
    this.composer.rename(instance.id);
    this.list.put(instance);
    this.list.setCurrent(instance.id);
    this.histories.show(conversation);
    this.people.show(instance);
    this.#attach(conversation);
    this.changed();
  }

  /** Where several people are there, the others learn that one is here, and whether one writes. */
  sayHere(isTyping: boolean): void {
    if (document.visibilityState === "visible" && this.people.isDue(isTyping)) this.conversation.sayHere(isTyping);
  }

  /** Show who is in the conversation, and let its owner change it. */
  async share(): Promise<void> {
    const { api, people } = this;
    await this.dialogs.ask("share", { api, people, instance: this.conversation.instance });
  }

  stop(): void {
    this.conversation.stop().catch(this.notices.fail);
  }

  /** Put a text into the clipboard. Resolves to whether it is there; a refusal is shown. */
  async copy(text: string): Promise<boolean> {
    const isCopied = await copyText(text);
    if (isCopied) this.announcer.say(t("common.copied"));
    else this.notices.show(t("message.copy-refused"));
    return isCopied;
  }

  /** Show another version of a message. Resolves to whether that worked; why not is shown. */
  async selectSibling(id: string): Promise<void> {
    try {
      await this.conversation.selectSibling(id);
    } catch (error) {
      this.notices.fail(error);
    }
  }

  /** The title of the window. */
  get documentTitle(): string {
    if (this.view === "approvals") return `${t("list.approvals")} · ${this.boot.product}`;
    if (this.view === "work") return `${t("list.work")} · ${this.boot.product}`;
    if (this.view === "settings") {
      return [this.#sectionTitle, t("list.settings"), this.boot.product].filter(Boolean).join(" · ");
    }
    const { instance } = this.conversation;
    const agent = this.agents.length > 1 ? ` · ${this.agentOf(instance).title}` : "";
    return `${this.threads.titleOf(instance)}${agent} · ${this.boot.product}`;
  }

  // --- what follows from the conversation's state -------------------------------------------------------------------------

  #onBack(conversation: Conversation): void {
    const { id } = conversation.instance;
    if (conversation === this.conversation && id && placeOf(location)) this.router.replace(this.#routeOf(id));
  }

  #onStatus(conversation: Conversation): void {
    if (conversation.isRecovering && !this.#saidRecovering) this.announcer.say(t("status.recovering-short"));
    this.#saidRecovering = conversation.isRecovering;
    const { instance: { id }, running } = conversation;
    if (running) this.undoing.forget();
    if (running) this.#endAnswer ??= begin(ANSWER);
    else this.#endAnswer = this.#endAnswer?.() ?? null;
    if (id) this.list.patch(id, { isRunning: Boolean(running) });
  }

  /** Follows the answer that is being written, as far as it has come. */
  #speak(conversation: Conversation): void {
    void conversation.version;
    const message = conversation.running?.message;
    if (!message) return;
    void conversation.revision(message.id);
    const at = message.parts.findLastIndex((part) => part.type === "text");
    const part = message.parts[at];
    if (message.isLive && part?.type === "text") untracked(() => this.speaker.follow(`${message.id} ${at}`, part.text));
  }

  #onEnd(conversation: Conversation, outcome: string): void {
    const asks = openQuestions(conversation).length > 0;
    const said: Record<string, string> = {
      completed: asks ? t("status.asks-approval") : t("status.answer-complete"),
      aborted: t("status.stopped"),
      error: t("status.answer-failed", { reason: conversation.failed?.error ?? "" }).trim(),
    };
    this.speaker.finish(said[outcome] ?? "");
    this.list.refreshSoon(800);
    this.#markSeen();
  }

  #markSeen(): void {
    const { id, role } = this.conversation.instance;
    if (id && role === "owner" && document.visibilityState === "visible") {
      this.api.changeInstance(id, { seen: true }).catch(() => {});
    }
  }

  /** Titles and marks of the shown conversation are those of the list. */
  #onListRead(): void {
    const { conversation } = this;
    const item = conversation?.instance.id && this.list.find(conversation.instance.id);
    if (item) {
      const { title, isPinned, isArchived } = item; // lists do not say which model answers
      conversation.update({ title, isPinned, isArchived });
    }
    const { items, pinned } = this.list;
    this.threads.desk?.refresh();
    const isWaiting = this.approvals.count > 0 || [...items, ...pinned].some((item) => item.waitingCount > 0);
    if (isWaiting || this.view === "approvals") this.approvals.refresh();
  }
}

const isMissing = (error: unknown): boolean => (error as { status?: number }).status === 404;
