// The page as one: the parts that it is made of, and what needs several of them. It has no document: views follow the parts, and
// everything that a person does is a method of one of them. Where the person is: `place.ts`.

import { copyText } from "../lib/clipboard.ts";
import { recall } from "../lib/storage.ts";
import { Speaker } from "../lib/speech.ts";
import { t } from "../lib/i18n.ts";
import { Api } from "../net/api.ts";
import { Approvals } from "./approvals.ts";
import type { Boot } from "./boot.ts";
import { Branching } from "./branching.ts";
import { Composer } from "./composer.ts";
import { Connection } from "./connection.ts";
import type { Conversation } from "./conversation.ts";
import { Conversations } from "./conversations.ts";
import { Deciding } from "./deciding.ts";
import { Dialogs, type DialogViews } from "./dialogs.ts";
import { FilesPlace } from "./files_place.ts";
import { Histories } from "./histories.ts";
import { Limits } from "./limits.ts";
import { ConversationList } from "./list.ts";
import { Models } from "./models.ts";
import { Announcer, Notices } from "./notices.ts";
import type { Outbox } from "./outbox.ts";
import { PanelState } from "./panel.ts";
import { People } from "./people.ts";
import { Person } from "./person.ts";
import { Place, WIDE } from "./place.ts";
import { Router } from "./router.ts";
import { Search } from "./search.ts";
import { Selection } from "./selection.ts";
import { Sending } from "./sending.ts";
import type { Summaries } from "./summaries.ts";
import { ThreadPlace } from "./thread_place.ts";
import { Undoing } from "./undoing.ts";
import type { Agent, Instance } from "./types.ts";
import { Unsent } from "./unsent.ts";

const PRESENCE_LOOK_MS = 5_000;

export class App {
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
  readonly unsent: Unsent;
  readonly person: Person;
  readonly place = new Place(this);

  /** `dialogs` loads the views of what is asked. */
  constructor(boot: Boot, dialogs: () => Promise<DialogViews>) {
    this.boot = boot;
    this.dialogs = new Dialogs(dialogs);
    this.person = new Person(boot.name, boot.user);
    this.agents = boot.agents.filter((agent) => agent.is_listed);
    this.api = new Api(boot.urls.api);
    this.router = new Router(boot.urls.home, (route) => this.place.show(route));
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
    this.unsent = new Unsent({
      deliver: (conversation, ...entry) => this.sending.deliver(conversation, ...entry),
      refused: (instance, entry) => this.sending.toDraft(instance, entry),
    });
  }

  /** First show: what the server has embedded, no request. */
  start(): void {
    const { approvals, boot, list, place } = this;
    list.start(boot.instances);
    place.start();
    approvals.start(boot.approvals, boot.page === "approvals");
    setInterval(() => this.sayHere(false), PRESENCE_LOOK_MS);
  }

  /** The conversation that is shown. */
  get conversation(): Conversation {
    return this.place.conversation;
  }

  get outbox(): Outbox {
    return this.place.outbox;
  }

  get summaries(): Summaries {
    return this.place.summaries;
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

  /** Titles and marks of the shown conversation are those of the list. */
  #onListRead(): void {
    const { conversation } = this;
    const item = conversation?.instance.id && this.list.find(conversation.instance.id);
    if (item) {
      const { title, isPinned, isArchived, projectId } = item; // lists do not say which model answers
      conversation.update({ title, isPinned, isArchived, projectId });
    }
    const { items, pinned, inside } = this.list;
    this.threads.desk?.refresh();
    const isWaiting = this.approvals.count > 0 ||
      [...items, ...pinned, ...inside].some((item) => item.waitingCount > 0);
    if (isWaiting || this.place.view === "approvals") this.approvals.refresh();
  }
}
