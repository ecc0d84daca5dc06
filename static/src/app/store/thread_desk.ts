// The threads of one agent and the workspaces that they work on: which is which, and the verbs on both. Every verb is one of the
// agent's methods, so that its other clients learn of it.

import "../messages/later.ts"; // its texts come with it
import { t } from "../lib/i18n.ts";
import { Store } from "../lib/store.ts";
import type { App } from "./app.ts";
import { titleOf } from "./instances.ts";
import type { Instance } from "./types.ts";

/** A workspace that threads may work on. */
export interface Workspace {
  id: string;
  name: string;
}

/** A thread, as far as the list of conversations does not say it. */
export interface Thread {
  id: string;
  name: string;
  workspaceId: string | null;
}

/** An entry of a menu, as menus take it. */
interface Entry {
  icon: string;
  label: string;
  run: () => unknown;
  isApart?: boolean;
  isDanger?: boolean;
}

export class ThreadDesk extends Store {
  readonly rootId: string;
  /** What the agent's conversation is called. */
  title = "";
  threads: readonly Thread[] = [];
  workspaces: readonly Workspace[] = [];
  isRead = false;
  /** Why the newest lists could not be read; what is shown stays. */
  error = "";
  #app: App;
  #reads = 0;

  constructor(app: App, rootId: string) {
    super();
    this.#app = app;
    this.rootId = rootId;
    this.refresh();
    app.api.instance(rootId).then((root) => {
      this.title = root.title || app.agentOf(root).title;
      this.changed();
    }, () => {}); // the way back leads there without it
  }

  /** Read both lists. Never rejects. */
  async refresh(): Promise<void> {
    const mine = ++this.#reads;
    try {
      const [threads, workspaces] = await Promise.all([
        this.#call<Thread[]>("listThreads"),
        this.#call<Workspace[]>("listWorkspaces"),
      ]);
      if (mine !== this.#reads) return;
      const same = JSON.stringify([this.threads, this.workspaces]) === JSON.stringify([threads, workspaces]);
      if (same && this.isRead && !this.error) return;
      Object.assign(this, { threads, workspaces, isRead: true, error: "" });
    } catch (error) {
      if (mine !== this.#reads) return;
      this.error = (error as Error).message;
    }
    this.changed();
  }

  /** The workspace that a thread works on, by the thread's conversation. */
  workspaceOf({ name }: Pick<Instance, "name">): Workspace | null {
    const id = this.threads.find((thread) => thread.id === name)?.workspaceId;
    return this.workspaces.find((workspace) => workspace.id === id) ?? null;
  }

  /** The threads that work on a workspace. */
  threadsOn = ({ id }: Workspace): Thread[] => this.threads.filter((thread) => thread.workspaceId === id);

  /** What stands below a thread's title in the list. */
  noteOf(item: Instance): string {
    if (!this.isRead) return "";
    return this.workspaceOf(item)?.name ?? t("threads.no-workspace");
  }

  // --- threads --------------------------------------------------------------------------------------------------------

  /** Make a thread with a name and open it. */
  async create(): Promise<void> {
    const name = await this.#ask("threads.new-title", "threads.name", "threads.new", "");
    if (name === null) return;
    await this.#attempt(async () => {
      const { id } = await this.#call<Thread>("createThread", name);
      await this.openThread(id);
    });
  }

  /** Open a thread by its short id. */
  async openThread(threadId: string): Promise<void> {
    const { id } = await this.#app.api.thread(threadId);
    await this.#app.place.open(id);
  }

  /** What one can do with a thread from its row or its head. `find`: opens the search within it. */
  entries(item: Instance, find?: () => void): Entry[] {
    const found: Entry[] = [
      { icon: "edit", label: t("common.rename"), run: () => this.rename(item) },
      { icon: "folder", label: t("threads.move"), run: () => this.move(item) },
    ];
    if (find) found.push({ icon: "search", label: t("conversation.find"), run: find });
    return [...found, {
      icon: "bin",
      label: t("common.delete"),
      run: () => this.remove(item),
      isDanger: true,
      isApart: true,
    }];
  }

  async rename(item: Instance): Promise<void> {
    const name = await this.#ask("threads.rename-title", "threads.name", "common.rename", item.title);
    if (name === null) return;
    await this.#attempt(async () => {
      await this.#call("renameThread", item.name, name);
      this.#app.conversations.patch(item.id, { title: name });
    });
  }

  /** Choose the workspace that a thread works on, or none. */
  async move(item: Instance): Promise<void> {
    const current = this.workspaceOf(item)?.id ?? "";
    const answer = await this.#app.dialogs.ask("choose-workspace", {
      workspaces: this.workspaces,
      current,
      thread: titleOf(item),
    });
    if (answer !== null && answer.id !== current) await this.work(item, answer.id);
  }

  /** Have a thread work on a workspace, or with "" on none. */
  work = (item: Instance, workspaceId: string): Promise<void> =>
    this.#attempt(async () => {
      const isDone = workspaceId
        ? await this.#call<boolean>("attachWorkspace", item.name, workspaceId)
        : await this.#call<boolean>("detachWorkspace", item.name);
      if (!isDone) throw new Error(t("threads.workspace-gone"));
    });

  async remove(item: Instance): Promise<void> {
    if (!await this.#confirm("threads.delete-title", t("threads.delete-text", { title: titleOf(item) }))) return;
    await this.#attempt(async () => {
      await this.#call("deleteThread", item.name);
      this.#app.list.drop(item.id);
      if (this.#app.conversation.instance.id === item.id) await this.#app.place.open(this.rootId);
    });
  }

  // --- workspaces -----------------------------------------------------------------------------------------------------

  async createWorkspace(): Promise<void> {
    const name = await this.#ask("threads.new-workspace-title", "threads.workspace-name", "threads.create", "");
    if (name !== null) await this.#attempt(() => this.#call("createWorkspace", name));
  }

  async renameWorkspace({ id, name }: Workspace): Promise<void> {
    const chosen = await this.#ask("threads.rename-workspace-title", "threads.workspace-name", "common.rename", name);
    if (chosen !== null) await this.#attempt(() => this.#call("renameWorkspace", id, chosen));
  }

  async removeWorkspace(workspace: Workspace): Promise<void> {
    const values = { name: workspace.name, count: this.threadsOn(workspace).length };
    const text = `${t("threads.delete-workspace-text", values)} ${t("threads.delete-workspace-threads", values)}`;
    if (!await this.#confirm("threads.delete-workspace-title", text)) return;
    await this.#attempt(() => this.#call("deleteWorkspace", workspace.id));
  }

  // --- how --------------------------------------------------------------------------------------------------------------

  async #call<Result>(method: string, ...args: string[]): Promise<Result> {
    return (await this.#app.api.callMethod<Result>(this.rootId, method, args)).result;
  }

  /** Do something and read again, whatever became of it. */
  async #attempt(verb: () => Promise<unknown>): Promise<void> {
    try {
      await verb();
    } catch (error) {
      this.#app.notices.fail(error);
    }
    await Promise.all([this.refresh(), this.#app.list.refresh()]);
  }

  #ask(title: TextKey, label: TextKey, confirm: TextKey, value: string): Promise<string | null> {
    return this.#app.dialogs.ask("ask-name", { title: t(title), label: t(label), confirm: t(confirm), value });
  }

  async #confirm(title: TextKey, text: string): Promise<boolean> {
    const given = { title: t(title), text, confirm: t("common.delete"), isDanger: true };
    return await this.#app.dialogs.ask("confirm", given) !== null;
  }
}

type TextKey = Parameters<typeof t>[0];

/** Show the threads of a conversation. For `ThreadPlace`. */
export const openDesk = (app: App, rootId: string): ThreadDesk => new ThreadDesk(app, rootId);
