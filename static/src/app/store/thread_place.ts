// Whether what is shown belongs to an agent that keeps threads: then the list has these, and messages to the agent begin one.

import { pending } from "../lib/busy.ts";
import { Store } from "../lib/store.ts";
import { t } from "../lib/i18n.ts";
import type { App } from "./app.ts";
import { fromInstance, titleOf } from "./instances.ts";
import type { ThreadDesk } from "./thread_desk.ts";
import type { Instance } from "./types.ts";

const load = () => pending(import("./thread_desk.ts"));

export class ThreadPlace extends Store {
  /** The conversation of the agent that keeps the threads; "" where one is elsewhere. */
  rootId = "";
  /** Its threads and workspaces; null until they are loaded. */
  desk: ThreadDesk | null = null;
  #app: App;

  constructor(app: App) {
    super();
    this.#app = app;
  }

  /** Whether this agent keeps threads. */
  keeps = (instance: Pick<Instance, "agent">): boolean => Boolean(this.#app.agentOf(instance).thread_agent);

  /** Whether a conversation is a thread of such an agent. */
  isThread = ({ agent, parentId }: Pick<Instance, "agent" | "parentId">): boolean =>
    Boolean(parentId) && this.#app.boot.agents.some(({ thread_agent: threads }) => threads === agent);

  /** What a conversation is called: one of an agent that keeps threads has the agent's name until it is given one. */
  titleOf = (instance: Instance): string =>
    instance.title || (this.keeps(instance) && !instance.isNew ? this.#app.agentOf(instance).title : titleOf(instance));

  /** Another conversation is shown: the list beside it is that of its threads, or of all conversations. */
  show(instance: Instance): void {
    const rootId = this.keeps(instance) ? instance.id : this.isThread(instance) ? instance.parentId! : "";
    this.#app.list.showBelow(rootId);
    if (rootId === this.rootId) return;
    this.rootId = rootId;
    this.desk = null;
    this.changed();
    if (!rootId) return;
    load().then(({ openDesk }) => {
      if (this.rootId !== rootId || this.desk) return;
      this.desk = openDesk(this.#app, rootId);
      this.changed();
    }, () => this.rootId = ""); // the next conversation tries again
  }

  /** Show the thread of an address, in place of the address. */
  async open(threadId: string): Promise<void> {
    const { api, notices, router } = this.#app;
    try {
      const { id } = await api.thread(threadId);
      router.replace({ page: "conversation", id, place: null });
      await this.#app.place.open(id, { isPushed: false });
    } catch (error) {
      const isMissing = (error as { status?: number }).status === 404;
      notices.show(isMissing ? t("conversation.missing") : (error as Error).message);
      router.replace({ page: "list" });
    }
  }

  /** Make a thread of the shown agent and open it. Throws an `ApiError`; nothing is lost then. */
  async begin(title: string): Promise<void> {
    const { api, agentOf, conversation: { instance } } = this.#app;
    const root = instance.isNew
      ? fromInstance(await api.createInstance(instance.agent, instance.name, agentOf(instance).title))
      : instance;
    const { result } = await api.callMethod<{ id: string }>(root.id, "createThread", [title]);
    const { id } = await api.thread(result.id);
    await this.#app.place.open(id);
  }
}
