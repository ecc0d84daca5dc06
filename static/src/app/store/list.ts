// The list of conversations: pinned ones first, then those of projects, then by day of the last activity. It is read by pages, looked at again now and
// then, and changed at once where something is known before it is read.

import type { Api, InstancePage, Schemas } from "../net/api.ts";
import { Due } from "../lib/busy.ts";
import { recall, remember } from "../lib/storage.ts";
import { Store } from "../lib/store.ts";
import type { RawInstance } from "../net/types.ts";
import { fromInstance } from "./instances.ts";
import type { Instance } from "./types.ts";

const FIRST_PAGE = 60;
const LONGEST_PAGE = 200; // of the API
const LOOK_MS = 12_000; // while the page is seen: sockets report one's own conversations only while one is open

export type Project = Schemas["ProjectOut"];

/** What a page begins with: conversations that are in no project, the pinned ones, projects and those in these. */
export interface ListedPage extends InstancePage {
  pinned: RawInstance[];
  projects: Project[];
  in_projects: RawInstance[];
}

export class ConversationList extends Store {
  items: readonly Instance[] = [];
  pinned: readonly Instance[] = [];
  projects: readonly Project[] = [];
  /** Conversations in projects, as far as they are loaded. */
  inside: readonly Instance[] = [];
  /** Ids of the projects whose conversations are shown. */
  unfolded: ReadonlySet<string> = new Set(recall<string[]>("projects") ?? []);
  currentId = "";
  /** What is searched for; empty shows the list itself. */
  query = "";
  isArchive = false;
  /** The conversation whose threads are listed; "" for the list of all. */
  parentId = "";
  /** The shown items are of the former query or list: the new ones are on their way. */
  isLoading = false;
  /** Why the newest page could not be read; what is shown stays. */
  error: Error | null = null;
  /** There may be projects that are not known yet. */
  #looksForProjects = false;
  #cursor = "";
  #shown = { query: "", isArchive: false, parentId: "" };
  #abort: AbortController | null = null;
  readonly #due = new Due();
  #api: Api;
  #onRead: () => void;

  /** `onRead` is called after each page: titles and marks of open conversations may have changed. */
  constructor(api: Api, onRead: () => void) {
    super();
    this.#api = api;
    this.#onRead = onRead;
  }

  /** Begin with what the server has embedded, and look again from now on. */
  start(page: ListedPage): void {
    this.projects = page.projects;
    this.inside = page.in_projects.map(fromInstance);
    this.#take(page, [], page.pinned);
    const look = () => document.visibilityState === "visible" && this.#look();
    setInterval(look, LOOK_MS);
    document.addEventListener("visibilitychange", look);
    addEventListener("storage", ({ key }) => {
      if (key === "think.projects") this.lookForProjects();
    });
  }

  /** A project was made, changed or removed elsewhere. */
  lookForProjects(): void {
    this.#looksForProjects = true;
    this.refreshSoon();
  }

  /** Look again. Where no project is known and no line is open, another browser may have made the first one. */
  async #look(): Promise<void> {
    if (!this.#looksForProjects && !this.projects.length && this.isWhole) {
      this.#looksForProjects = await this.#api.projects().then(({ length }) => length > 0, () => false);
    }
    await this.refresh();
  }

  find = (id: string): Instance | undefined =>
    [this.items, this.pinned, this.inside].flatMap((items) => items.filter((item) => item.id === id)).at(0);

  /** Whether the list itself is shown: nothing is searched for, and it is not what is archived, or threads. */
  get isWhole(): boolean {
    return !this.query && !this.isArchive && !this.parentId;
  }

  /** The loaded conversations of a project, the last active first; pinned ones stand above. */
  ofProject(id: string): Instance[] {
    const pinned = new Set(this.pinned.map((item) => item.id));
    const found = [...this.items, ...this.inside].filter((item) => item.projectId === id && !pinned.has(item.id));
    return [...new Map(found.map((item) => [item.id, item])).values()]
      .sort((one, other) => other.activeAt.localeCompare(one.activeAt));
  }

  /** Whether more of its conversations are on the server than are loaded. */
  hasMoreOf({ id, conversation_count: count }: Project): boolean {
    return count > new Set(
      [...this.inside, ...this.items, ...this.pinned].filter((item) => item.projectId === id)
        .map((item) => item.id),
    ).size;
  }

  /** Show the conversations of a project, or put them away; the browser remembers it. */
  unfold(id: string, isOpen = !this.unfolded.has(id)): void {
    const ids = new Set(this.unfolded);
    if (isOpen) ids.add(id);
    else ids.delete(id);
    this.unfolded = ids;
    remember("projects", ids.size ? [...ids] : null);
    this.changed();
  }

  /** A project was made, changed, or with null removed. */
  putProject(id: string, project: Project | null): void {
    const others = this.projects.filter((each) => each.id !== id);
    this.projects = project ? [...others, project].sort((one, other) => one.name.localeCompare(other.name)) : others;
    this.changed();
  }

  /** Read all conversations of a project. Errors: `ApiError`; nothing has changed then. */
  async loadProject(id: string): Promise<void> {
    const found: Instance[] = [];
    let cursor: string | null = "";
    do {
      const page: InstancePage = await this.#api.instances({ project: id, cursor, limit: LONGEST_PAGE });
      found.push(...page.items.map(fromInstance));
      cursor = page.next_cursor;
    } while (cursor);
    this.inside = [...this.inside.filter((item) => item.projectId !== id), ...found];
    this.changed();
  }

  get hasMore(): boolean {
    return this.#cursor !== "";
  }

  setCurrent(id: string): void {
    if (this.currentId === id) return;
    this.currentId = id;
    this.changed();
  }

  /** Show the titles that match; an empty query shows the list. */
  search(query: string): void {
    this.query = query;
    this.isLoading = true;
    this.changed();
    this.refreshSoon(180);
  }

  /** Show what is archived, or the list again. */
  showArchive(isArchive: boolean): Promise<void> {
    Object.assign(this, { isArchive, items: [], pinned: [], isLoading: true });
    this.#cursor = "";
    this.changed();
    return this.refresh();
  }

  /** Show the threads of a conversation, or with "" the list again. */
  showBelow(parentId: string): void {
    if (parentId === this.parentId) return;
    Object.assign(this, { parentId, isArchive: false, items: [], pinned: [], isLoading: true });
    this.#cursor = "";
    this.changed();
    this.refresh();
  }

  refreshSoon(pause = 300): void {
    this.#due.set(() => this.refresh(), pause);
  }

  async refresh(): Promise<void> {
    this.#abort?.abort();
    const { signal } = this.#abort = new AbortController();
    const { isWhole } = this;
    const mayHaveProjects = this.#looksForProjects || this.projects.length > 0 ||
      this.items.some((item) => item.projectId);
    const hasProjects = isWhole && mayHaveProjects;
    const limit = Math.min(LONGEST_PAGE, Math.max(FIRST_PAGE, this.items.length));
    try {
      const [page, pinned, projects, inside] = await Promise.all([
        this.#api.instances({ ...this.#wanted, limit }, { signal }),
        isWhole ? this.#api.instances({ pinned: true, limit: LONGEST_PAGE }, { signal }) : null,
        hasProjects ? this.#api.projects({ signal }) : null,
        hasProjects ? this.#api.instances({ project: "any", limit: LONGEST_PAGE }, { signal }) : null,
      ]);
      if (signal.aborted) return;
      this.error = null;
      if (projects && inside) this.#takeProjects(projects, inside);
      this.#take(page, this.#isSameList ? this.items : [], pinned?.items ?? []);
      this.#onRead();
    } catch (error) {
      if (signal.aborted) return;
      this.error = error as Error; // what is shown stays
      this.isLoading = false;
      this.changed();
    }
  }

  /** Read the page after the last item. Errors: `ApiError`; nothing has changed then. */
  async loadMore(): Promise<void> {
    const { query, isArchive, parentId } = this;
    const page = await this.#api.instances({ ...this.#wanted, cursor: this.#cursor });
    const isSame = query === this.query && isArchive === this.isArchive && parentId === this.parentId;
    if (!isSame) return; // another list by now
    const known = new Set(this.items.map((item) => item.id));
    this.items = [...this.items, ...page.items.map(fromInstance).filter((item) => !known.has(item.id))];
    this.#cursor = page.next_cursor ?? "";
    this.changed();
  }

  /** Change one conversation at once; the next page settles it. */
  patch(id: string, change: Partial<Instance>): void {
    const known = this.find(id);
    if (!known || Object.entries(change).every(([key, value]) => known[key as keyof Instance] === value)) return;
    const patched = (item: Instance) => (item.id === id ? { ...item, ...change } : item);
    this.items = this.items.map(patched);
    this.pinned = this.pinned.map(patched);
    this.inside = this.inside.map(patched);
    if ("projectId" in change && change.projectId !== known.projectId) this.refreshSoon();
    this.changed();
  }

  /** Show a conversation that has just been made; the next page settles its place. */
  put(item: Instance): void {
    if (item.isTemporary || this.find(item.id) || this.isArchive || (item.parentId ?? "") !== this.parentId) return;
    this.items = [{ ...item }, ...this.items];
    this.changed();
  }

  /** A conversation was pinned, archived or restored: at once here, settled by the next page. */
  moved(item: Instance): Promise<void> {
    if (item.isArchived !== this.isArchive && !this.query) this.drop(item.id);
    else this.patch(item.id, item);
    return this.refresh();
  }

  drop(id: string): void {
    this.items = this.items.filter((item) => item.id !== id);
    this.pinned = this.pinned.filter((item) => item.id !== id);
    this.inside = this.inside.filter((item) => item.id !== id);
    this.changed();
  }

  get #wanted(): { search: string; archived?: boolean; parent?: string; project?: string } {
    const { isWhole, query, isArchive, parentId } = this;
    return { search: query, archived: isArchive || undefined, parent: parentId, project: isWhole ? "none" : "" };
  }

  get #isSameList(): boolean {
    const { query, isArchive, parentId } = this.#shown;
    return this.query === query && this.isArchive === isArchive && this.parentId === parentId;
  }

  /** What is loaded of projects beyond the newest page stays. */
  #takeProjects(projects: Project[], page: InstancePage): void {
    const fresh = page.items.map(fromInstance);
    const ids = new Set(fresh.map((item) => item.id));
    const end = page.next_cursor ? fresh.at(-1)!.activeAt : "";
    const older = this.inside.filter((item) => !ids.has(item.id) && item.projectId && item.activeAt <= end);
    this.projects = JSON.stringify(projects) === JSON.stringify(this.projects) ? this.projects : projects;
    this.inside = kept(this.inside, [...fresh, ...older]);
  }

  /** Show the newest page. Items of `before` that are older than all of it, loaded by "Show more", stay with their cursor. */
  #take(page: InstancePage, before: readonly Instance[], pinned: RawInstance[]): void {
    const fresh = page.items.map(fromInstance);
    const ids = new Set(fresh.map((item) => item.id));
    const end = new Date(fresh.at(-1)?.activeAt ?? 0);
    const isHere = ({ projectId }: Instance) => !this.isWhole || !projectId;
    const isOlder = (item: Instance) => isHere(item) && !ids.has(item.id) && new Date(item.activeAt) <= end; // many may be of one moment
    const older = page.next_cursor ? before.filter(isOlder) : [];
    this.pinned = kept(this.pinned, pinned.map(fromInstance));
    this.items = kept(this.items, [...fresh, ...older]);
    if (!older.length) this.#cursor = page.next_cursor ?? "";
    this.#shown = { query: this.query, isArchive: this.isArchive, parentId: this.parentId };
    this.isLoading = false;
    this.changed();
  }
}

/** The new items, equal ones as the same objects: their rows are not drawn again. */
function kept(old: readonly Instance[], fresh: Instance[]): Instance[] {
  const known = new Map(old.map((item) => [item.id, item]));
  return fresh.map((item) => {
    const same = known.get(item.id);
    return same && JSON.stringify(same) === JSON.stringify(item) ? same : item;
  });
}
