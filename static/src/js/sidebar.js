// The list of conversations: pinned ones first, then by day; marked while one answers or has something unread. A search
// lists the titles and the messages that match.

import { h, iconButton, setText } from "./dom.js";
import { notice } from "./dialogs.js";
import { dayGroup } from "../app/lib/format.ts";
import { HitsView } from "./hits_view.js";
import { moveFocus } from "./menu.js";
import { fromInstance, titleOf } from "../app/store/instances.ts";

const SEARCH_PAUSE = 180;
const POLL_VISIBLE = 12_000;
const LONGEST_PAGE = 200; // of the API

export class Sidebar {
  #api;
  #items = [];
  #pinned = [];
  #isArchive = false;
  #shownArchive = false;
  #currentId = "";
  #search = "";
  #shownSearch = "";
  #searchTimer = 0;
  #abort = null;
  #cursor = "";
  #key = "";

  /** `elements`: {list, search, more, empty, hits, archive}. `on`: {base, open(id), openHit(hit), menu(item, button), changed(items)}. */
  constructor(elements, api, on, first) {
    this.elements = elements;
    this.#api = api;
    this.on = on;
    elements.search.addEventListener("input", () => this.#onSearch());
    elements.search.addEventListener("keydown", (event) => this.#onSearchKey(event));
    elements.list.parentElement.addEventListener("keydown", (event) => this.#onListKey(event));
    elements.list.addEventListener("click", (event) => this.#onClick(event));
    elements.more.addEventListener("click", () => this.#loadMore());
    elements.archive.querySelector("button").addEventListener("click", () => this.showArchive(false));
    this.hits = new HitsView(elements.hits, api, {
      base: on.base,
      open: (hit) => on.openHit(hit),
      found: () => this.draw(),
      isQuiet: true,
    });
    if (first) this.#take(first, [], first.pinned);
    setInterval(() => document.visibilityState === "visible" && this.refresh(), POLL_VISIBLE);
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.refresh());
  }

  find(id) {
    return this.#items.find((item) => item.id === id) ?? this.#pinned.find((item) => item.id === id);
  }

  /** Show what was put away instead, or the list again. */
  showArchive(isArchive) {
    this.#isArchive = isArchive;
    this.elements.archive.hidden = !isArchive;
    this.#items = [];
    this.#pinned = [];
    this.draw();
    if (isArchive) this.elements.archive.querySelector("button").focus();
    else this.elements.search.focus();
    return this.refresh();
  }

  setCurrent(id) {
    this.#currentId = id;
    this.draw();
  }

  focusSearch() {
    this.elements.search.focus();
    this.elements.search.select();
  }

  refreshSoon(pause = 300) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.refresh(), pause);
  }

  async refresh() {
    this.#abort?.abort();
    this.#abort = new AbortController();
    try {
      const limit = Math.min(LONGEST_PAGE, Math.max(60, this.#items.length));
      const { signal } = this.#abort;
      const isWhole = !this.#search && !this.#isArchive;
      const [page, pinned] = await Promise.all([
        this.#api.instances({ ...this.#wanted, limit }, { signal }),
        isWhole ? this.#api.instances({ pinned: true, limit: LONGEST_PAGE }, { signal }) : { items: [] },
      ]);
      this.#take(page, this.#search === this.#shownSearch ? this.#items : [], pinned.items);
    } catch {
      // Unreachable or overtaken: what is shown stays, the line's own state tells about the connection.
    }
  }

  get #wanted() {
    return { search: this.#search, archived: this.#isArchive || undefined };
  }

  /** Change one item at once; the next refresh settles it. */
  patch(id, change) {
    for (const item of [...this.#items, ...this.#pinned]) if (item.id === id) Object.assign(item, change);
    this.draw();
  }

  /** Show a conversation that has just been made; the next refresh settles its place. */
  put(item) {
    if (!this.find(item.id) && !this.#isArchive) this.#items.unshift({ ...item });
    this.draw();
  }

  /** Something was pinned, put away or taken back: at once here, settled by a refresh. */
  changed(item) {
    if (item.isArchived !== this.#isArchive && !this.#search) this.drop(item.id);
    else this.patch(item.id, item);
    if (document.activeElement === document.body) this.focusList();
    return this.refresh();
  }

  drop(id) {
    this.#items = this.#items.filter((item) => item.id !== id);
    this.#pinned = this.#pinned.filter((item) => item.id !== id);
    this.draw();
  }

  /** Show the newest page. What of `before` is older than all of it, loaded by "Show more", stays with its cursor. */
  #take(page, before = [], pinned = []) {
    const fresh = page.items.map(fromInstance);
    this.#pinned = pinned.map(fromInstance);
    const ids = new Set(fresh.map((item) => item.id));
    const end = fresh.at(-1)?.activeAt ?? "";
    const older = page.next_cursor
      ? before.filter((item) => !ids.has(item.id) && new Date(item.activeAt) < new Date(end))
      : [];
    this.#items = [...fresh, ...older];
    if (!older.length) this.#cursor = page.next_cursor ?? "";
    this.#shownSearch = this.#search;
    this.#shownArchive = this.#isArchive;
    this.draw();
    this.on.changed(this.#items);
  }

  async #loadMore() {
    const search = this.#search;
    let page;
    try {
      page = await this.#api.instances({ ...this.#wanted, cursor: this.#cursor });
    } catch (error) {
      return notice(error.message);
    }
    if (search !== this.#search) return; // another list by now
    const known = new Set(this.#items.map((item) => item.id));
    this.#items.push(...page.items.map(fromInstance).filter((item) => !known.has(item.id)));
    this.#cursor = page.next_cursor ?? "";
    this.draw();
  }

  /** Put the focus into the list, or above it when it is empty. */
  focusList() {
    (this.elements.list.querySelector("a") ?? this.elements.search).focus();
  }

  draw() {
    const isLoading = this.#shownArchive !== this.#isArchive;
    const key = JSON.stringify([
      this.#items,
      this.#pinned,
      this.#currentId,
      this.#search,
      this.#cursor,
      this.hits?.count,
      isLoading,
      new Date().getDate(),
    ]);
    if (key === this.#key) return;
    this.#key = key;
    const focused = document.activeElement?.closest("[data-instance]")?.getAttribute("data-instance");
    const kind = document.activeElement?.tagName;
    const sections = [...this.#groups()].map(([name, items], index) => this.#section(name, items, index));
    this.elements.list.replaceChildren(...sections);
    this.elements.more.hidden = !this.#cursor;
    this.elements.empty.hidden = isLoading || this.#items.length > 0 || (this.#search !== "" && this.hits?.count !== 0);
    setText(
      this.elements.empty,
      this.#search ? "Nothing matches." : this.#isArchive ? "Nothing is archived." : "No conversations yet.",
    );
    if (focused) this.elements.list.querySelector(`[data-instance="${CSS.escape(focused)}"] ${kind}`)?.focus();
  }

  #groups() {
    const groups = new Map();
    const put = (group, item) => groups.set(group, [...(groups.get(group) ?? []), item]);
    if (this.#search) this.#items.forEach((item) => put("Titles", item));
    else {
      const pinned = new Set(this.#pinned.map((item) => item.id));
      this.#pinned.forEach((item) => put("Pinned", item));
      for (const item of this.#items) if (!pinned.has(item.id)) put(dayGroup(item.activeAt), item);
    }
    return groups;
  }

  #section(name, items, index) {
    const id = `group-${index}`;
    return h(
      "section",
      { "aria-labelledby": id },
      h("h2", { id, text: name }),
      h("ul", {}, items.map((item) => this.#row(item))),
    );
  }

  #row(item) {
    const isCurrent = item.id === this.#currentId;
    const mark = item.isRunning
      ? h("span", { class: "mark is-running" }, h("span", { class: "visually-hidden", text: "(answering)" }))
      : item.isUnread && !isCurrent
      ? h("span", { class: "mark is-unread" }, h("span", { class: "visually-hidden", text: "(unread)" }))
      : null;
    const link = h(
      "a",
      { href: `${this.on.base}c/${item.id}`, title: item.title || null, "aria-current": isCurrent ? "page" : null },
      h("span", { class: "row-title", dir: "auto", text: titleOf(item) }),
      mark,
    );
    const more = iconButton("more", `More for “${titleOf(item)}”`, null, {
      "data-action": "menu",
      "aria-haspopup": "menu",
    });
    return h("li", { class: "row", dataset: { instance: item.id } }, link, more);
  }

  #onClick(event) {
    const row = event.target.closest("[data-instance]");
    if (!row) return;
    const button = event.target.closest('[data-action="menu"]');
    if (button) return this.on.menu(this.find(row.dataset.instance), button);
    if (event.target.closest("a") && !event.metaKey && !event.ctrlKey && !event.shiftKey && event.button === 0) {
      event.preventDefault();
      this.on.open(row.dataset.instance);
    }
  }

  #onSearch() {
    this.#search = this.elements.search.value.trim();
    clearTimeout(this.#searchTimer);
    this.#searchTimer = setTimeout(() => this.hits.search(this.#search), SEARCH_PAUSE);
    this.refreshSoon(SEARCH_PAUSE);
  }

  #onSearchKey(event) {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      this.elements.list.parentElement.querySelector("a")?.focus();
    } else if (event.key === "Escape" && this.elements.search.value) {
      event.preventDefault();
      this.elements.search.value = "";
      this.#onSearch();
    }
  }

  #onListKey(event) {
    if (event.target.matches("a")) moveFocus(event, [...this.elements.list.parentElement.querySelectorAll("a")]);
  }
}
