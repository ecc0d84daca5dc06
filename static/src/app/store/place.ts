// Where the person is: the view, the conversation that is shown with what belongs to it, and where in it the reader is taken.

import { newId } from "../lib/ids.ts";
import { recall, remember } from "../lib/storage.ts";
import { Store } from "../lib/store.ts";
import { t } from "../lib/i18n.ts";
import type { RawPage } from "../net/types.ts";
import type { App } from "./app.ts";
import { Conversation } from "./conversation.ts";
import { Following } from "./following.ts";
import { fromInstance, isOwn, newInstance, pathOf } from "./instances.ts";
import { Outbox } from "./outbox.ts";
import { type MessagePlace, placeOf, type Route } from "./router.ts";
import type { Destination } from "./sending.ts";
import { Summaries } from "./summaries.ts";
import type { Instance } from "./types.ts";
import { keptInHistory } from "./unsent.ts";

export const WIDE = matchMedia("(min-width: 760px)"); // beneath, one column at a time
const HAS_DRAWER = matchMedia("(min-width: 760px) and (max-width: 899px)"); // the list lies over the conversation

/** Where the reader is to be taken, for the timeline. `query`: words to mark in the message; `keepsFocus`: the focus stays. */
export interface Reveal {
  messageId: string;
  query: string;
  keepsFocus: boolean;
}

/** What the narrow page shows, and the wide one beside the list. */
export type View = "list" | "conversation" | "approvals" | "settings" | "work";

export class Place extends Store {
  view: View = "conversation";
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
  #sectionTitle = "";
  #app: App;
  #following: Following | null = null;

  constructor(app: App) {
    super();
    this.#app = app;
  }

  /** First show: what the server has embedded, no request. */
  start(): void {
    const { boot, router, threads } = this.#app;
    HAS_DRAWER.addEventListener("change", () => this.#fitSidebar());
    const route = router.read(new URL(location.href));
    const wantsList = boot.page === "list" && !WIDE.matches;
    if (boot.instance) {
      this.#showConversation(fromInstance(boot.instance), boot.messages, placeOf(location));
      const isNewest = boot.page === "list" && !wantsList && route.page === "list";
      if (isNewest) router.replace(routeOf(boot.instance.id));
    } else if (route.page === "new") this.#showNew(route.agent, route.project);
    else this.#showNew("");
    if (boot.page === "settings" || boot.page === "work") return this.show(route);
    this.#setView(boot.page === "approvals" ? "approvals" : wantsList ? "list" : "conversation");
    if (route.page === "thread") threads.open(route.id);
  }

  /** Show what an address names; the address itself is as it should be. */
  show(route: Route): void {
    if (route.page === "list") return this.#setView("list");
    if (route.page === "approvals") return this.#showApprovals();
    if (route.page === "work") return this.#setView("work");
    if (route.page === "settings") return this.#showSettings(route.section);
    if (route.page === "new") return this.#showNew(route.agent, route.project);
    if (route.page === "thread") return void this.#app.threads.open(route.id);
    this.open(route.id, { place: route.place, isPushed: false });
  }

  showList(): void {
    this.#app.router.push({ page: "list" });
    this.#setView("list");
    this.#app.list.refresh();
  }

  showApprovals(): void {
    this.#app.router.push({ page: "approvals" });
    this.#showApprovals();
  }

  /** What is at work in all conversations. */
  showWork(): void {
    this.#app.router.push({ page: "work" });
    this.#setView("work");
  }

  /** A section of the settings; "" for the list of them, or the first one beside it. */
  showSettings(section: string): void {
    this.#app.router.push({ page: "settings", section });
    this.#showSettings(section);
  }

  /** What the open section is called, for the title of the window. */
  nameSection(title: string): void {
    if (title === this.#sectionTitle) return;
    this.#sectionTitle = title;
    this.changed();
  }

  /** `project`: the id of the one that it begins in. */
  newConversation(agent = "", project = ""): void {
    this.#app.router.push({ page: "new", agent, project });
    this.#showNew(agent, project);
  }

  /** Open a conversation, at a message where `place` names one. `query`: words of a search to mark there. */
  async open(id: string, { place = null, isPushed = true, keepsFocus = false, query = "" }: {
    place?: MessagePlace | null;
    isPushed?: boolean;
    keepsFocus?: boolean;
    query?: string;
  } = {}): Promise<void> {
    this.#setView("conversation");
    if (isPushed) this.#app.router.push({ page: "conversation", id, place });
    if (this.conversation.instance.id === id) {
      return place ? this.#goTo(place, query, keepsFocus) : this.conversation.backToNewest();
    }
    const listed = this.#app.list.find(id);
    let instance = listed && { ...listed, model: "" }; // lists do not say which model answers
    if (!instance) {
      try {
        instance = fromInstance(await this.#app.api.instance(id));
      } catch (error) {
        this.#app.notices.show(isMissing(error) ? t("conversation.missing") : (error as Error).message);
        this.#app.router.replace({ page: "new", agent: "" });
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
      this.#app.notices.show(isMissing(error) ? t("message.missing") : (error as Error).message);
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

  setFinding(isFinding: boolean): void {
    this.isFinding = isFinding;
    if (!isFinding) this.#app.find.clear();
    this.changed();
  }

  /** The page has become so wide or narrow that the list is a drawer, or is none any more: it does not cover what is read. */
  #fitSidebar(): void {
    this.isSidebarHidden = HAS_DRAWER.matches ? this.view !== "list" : recall("sidebar-hidden") === true;
    this.changed();
  }

  #setView(view: View): void {
    this.view = view;
    if (HAS_DRAWER.matches) this.isSidebarHidden = view !== "list";
    this.changed();
  }

  #showApprovals(): void {
    this.#app.approvals.refresh();
    this.#setView("approvals");
  }

  #showSettings(section: string): void {
    this.section = section;
    this.#setView("settings");
  }

  // --- the shown conversation -------------------------------------------------------------------------------------------

  /** A new conversation: each tab generates a name, unless a message that it began here was not sent yet. */
  #showNew(agent: string, project = ""): void {
    const { boot, lastAgent, list } = this.#app;
    const chosen = boot.agents.find((item) => item.name === agent);
    if (chosen?.is_listed) remember("agent", chosen.name);
    const projectId = list.projects.find(({ id }) => id === project)?.id ?? null;
    const fresh = { agent: chosen?.name ?? lastAgent, name: newId("cnv"), isTemporary: false, projectId };
    this.#showConversation(newInstance(keptInHistory() ?? fresh), null);
    this.#setView("conversation");
  }

  #showConversation(
    instance: Instance,
    page: RawPage | null,
    place: MessagePlace | null = null,
    query = "",
  ): void {
    const app = this.#app;
    this.#following?.stop();
    this.conversation?.close();
    this.summaries?.close();
    this.outbox?.close();
    app.connection.watch(null);
    const conversation = new Conversation(app.api, instance, page);
    this.conversation = conversation;
    this.outbox = new Outbox(pathOf(instance), (...entry) => app.sending.deliver(conversation, ...entry));
    this.summaries = new Summaries(app.api, conversation, (text, { isNotice = false } = {}) => {
      if (isNotice) app.notices.show(text);
      else app.announcer.say(text);
    });
    this.#following = new Following(app, conversation);
    this.reveal = null;
    app.undoing.show(instance);
    this.setFinding(false);
    app.unsent.take(instance);
    app.composer.open(instance.isNew ? `new.${instance.agent}` : instance.id);
    app.threads.show(instance);
    app.list.setCurrent(instance.id);
    app.histories.show(conversation);
    // One that cannot continue needs no socket; who only reads sees what others say.
    if (!instance.isNew && (!instance.isReadOnly || !isOwn(instance))) this.#following.attach();
    app.people.show(instance);
    this.#following.markSeen();
    this.changed();
    this.scrollToEnd();
    if (this.view === "conversation") app.composer.focus();
    if (place) this.#goTo(place, query);
    else if (!instance.isNew && !page) conversation.refresh();
  }

  /** A new conversation is on the server now. */
  appeared(destination: Destination): void {
    const { conversation } = this;
    if (destination !== conversation) return;
    const { composer, histories, list, people, router } = this.#app;
    const { instance } = conversation;
    router.replace(routeOf(instance.id));
    composer.rename(instance.id);
    list.put(instance);
    list.setCurrent(instance.id);
    histories.show(conversation);
    people.show(instance);
    this.#following?.attach();
    this.changed();
  }

  /** The reader is at the newest messages again: the address names no other ones. */
  cameBack(conversation: Conversation): void {
    const { id } = conversation.instance;
    if (conversation === this.conversation && id && placeOf(location)) this.#app.router.replace(routeOf(id));
  }

  /** The title of the window. */
  get documentTitle(): string {
    const { agentOf, agents, boot: { product }, threads } = this.#app;
    if (this.view === "approvals") return `${t("list.approvals")} · ${product}`;
    if (this.view === "work") return `${t("list.work")} · ${product}`;
    if (this.view === "settings") {
      return [this.#sectionTitle, t("list.settings"), product].filter(Boolean).join(" · ");
    }
    const { instance } = this.conversation;
    const agent = agents.length > 1 ? ` · ${agentOf(instance).title}` : "";
    return `${threads.titleOf(instance)}${agent} · ${product}`;
  }
}

const routeOf = (id: string): Route => ({ page: "conversation", id, place: null });

const isMissing = (error: unknown): boolean => (error as { status?: number }).status === 404;
