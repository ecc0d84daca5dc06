// The list of conversations: grouped by day, searched on the server, marked while one answers or has something unread.

import { h, icon, iconButton, setText } from "./dom.js";
import { notice } from "./dialogs.js";
import { dayGroup } from "./format.js";

const SEARCH_PAUSE = 180;
const POLL_VISIBLE = 12_000;
const LONGEST_PAGE = 200; // of the API

/** An instance of the API in this code's words. */
export function fromInstance(raw) {
  return {
    id: raw.id,
    agent: raw.agent,
    name: raw.name,
    path: raw.path,
    title: raw.title ?? "",
    activeAt: raw.active_at ?? raw.created_at ?? new Date().toISOString(),
    isRunning: Boolean(raw.is_running),
    isUnread: Boolean(raw.is_unread),
    isReadOnly: Boolean(raw.is_read_only),
  };
}

/** Where a conversation's socket is, behind `/agents/`. One that is not made yet is a root. */
export const pathOf = ({ path, agent, name }) => path || `${encodeURIComponent(agent)}/${encodeURIComponent(name)}`;

export const titleOf = (instance) => instance?.title || "New conversation";

export class Sidebar {
  #api;
  #items = [];
  #currentId = "";
  #search = "";
  #shownSearch = "";
  #searchTimer = 0;
  #abort = null;
  #cursor = "";
  #key = "";

  /** `elements`: {list, search, more, empty}. `on`: {open(id, event), rename(item), remove(item), changed(items)}. */
  constructor(elements, api, on, first) {
    this.elements = elements;
    this.#api = api;
    this.on = on;
    elements.search.addEventListener("input", () => this.#onSearch());
    elements.search.addEventListener("keydown", (event) => this.#onSearchKey(event));
    elements.list.addEventListener("keydown", (event) => this.#onListKey(event));
    elements.list.addEventListener("click", (event) => this.#onClick(event));
    elements.more.addEventListener("click", () => this.#loadMore());
    this.menu = this.#buildMenu();
    if (first) this.#take(first);
    setInterval(() => document.visibilityState === "visible" && this.refresh(), POLL_VISIBLE);
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.refresh());
  }

  find(id) {
    return this.#items.find((item) => item.id === id);
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
      const page = await this.#api.instances({ search: this.#search, limit }, { signal: this.#abort.signal });
      this.#take(page, this.#search === this.#shownSearch ? this.#items : []);
    } catch {
      // Unreachable or overtaken: what is shown stays, the line's own state tells about the connection.
    }
  }

  /** Change one item at once; the next refresh settles it. */
  patch(id, change) {
    const item = this.find(id);
    if (item) Object.assign(item, change);
    this.draw();
  }

  /** Show a conversation that has just been made; the next refresh settles its place. */
  put(item) {
    if (!this.find(item.id)) this.#items.unshift({ ...item });
    this.draw();
  }

  drop(id) {
    this.#items = this.#items.filter((item) => item.id !== id);
    this.draw();
  }

  /** Show the newest page. What of `before` is older than all of it, loaded by "Show more", stays with its cursor. */
  #take(page, before = []) {
    const fresh = page.items.map(fromInstance);
    const ids = new Set(fresh.map((item) => item.id));
    const end = fresh.at(-1)?.activeAt ?? "";
    const older = page.next_cursor ? before.filter((item) => !ids.has(item.id) && new Date(item.activeAt) < new Date(end)) : [];
    this.#items = [...fresh, ...older];
    if (!older.length) this.#cursor = page.next_cursor ?? "";
    this.#shownSearch = this.#search;
    this.draw();
    this.on.changed(this.#items);
  }

  async #loadMore() {
    const search = this.#search;
    let page;
    try {
      page = await this.#api.instances({ search, cursor: this.#cursor });
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
    const key = JSON.stringify([this.#items, this.#currentId, this.#search, this.#cursor, new Date().getDate()]);
    if (key === this.#key) return;
    this.#key = key;
    const focused = document.activeElement?.closest?.("[data-instance]")?.dataset.instance;
    const kind = document.activeElement?.tagName;
    const groups = new Map();
    for (const item of this.#items) {
      const group = dayGroup(item.activeAt);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(item);
    }
    const sections = [...groups].map(([name, items], index) => this.#section(name, items, index));
    this.elements.list.replaceChildren(...sections);
    this.elements.more.hidden = !this.#cursor;
    this.elements.empty.hidden = this.#items.length > 0;
    setText(this.elements.empty, this.#search ? "Nothing matches." : "No conversations yet.");
    if (focused) this.elements.list.querySelector(`[data-instance="${CSS.escape(focused)}"] ${kind}`)?.focus();
  }

  #section(name, items, index) {
    const id = `group-${index}`;
    return h("section", { "aria-labelledby": id }, h("h2", { id, text: name }), h("ul", {}, items.map((item) => this.#row(item))));
  }

  #row(item) {
    const isCurrent = item.id === this.#currentId;
    const mark = item.isRunning
      ? h("span", { class: "mark is-running" }, h("span", { class: "visually-hidden", text: "(answering)" }))
      : item.isUnread && !isCurrent
        ? h("span", { class: "mark is-unread" }, h("span", { class: "visually-hidden", text: "(unread)" }))
        : null;
    const link = h("a", { href: `${this.on.base}c/${item.id}`, title: item.title || null, "aria-current": isCurrent ? "page" : null }, h("span", { class: "row-title", dir: "auto", text: titleOf(item) }), mark);
    const more = iconButton("more", `More for “${titleOf(item)}”`, null, { "data-action": "menu", "aria-haspopup": "menu" });
    return h("li", { class: "row", dataset: { instance: item.id } }, link, more);
  }

  #onClick(event) {
    const row = event.target.closest("[data-instance]");
    if (!row) return;
    const button = event.target.closest('[data-action="menu"]');
    if (button) return this.#openMenu(row.dataset.instance, button);
    if (event.target.closest("a") && !event.metaKey && !event.ctrlKey && !event.shiftKey && event.button === 0) {
      event.preventDefault();
      this.on.open(row.dataset.instance);
    }
  }

  #buildMenu() {
    const choose = (name) => () => {
      this.menu.hidePopover();
      const item = this.find(this.menu.dataset.instance);
      if (item) this.on[name](item);
    };
    const entry = (name, symbol, label) => h("button", { type: "button", role: "menuitem", onclick: choose(name) }, icon(symbol), label);
    const menu = h("div", { class: "menu", popover: "auto", role: "menu", "aria-label": "Conversation" }, entry("rename", "edit", "Rename"), entry("remove", "bin", "Delete"));
    menu.addEventListener("keydown", (event) => moveFocus(event, [...menu.querySelectorAll("button")]));
    this.elements.list.parentElement.append(menu);
    return menu;
  }

  #openMenu(id, button) {
    this.menu.dataset.instance = id;
    this.menu.showPopover();
    const place = button.getBoundingClientRect();
    const left = Math.min(place.left, innerWidth - this.menu.offsetWidth - 8);
    const top = Math.min(place.bottom + 4, innerHeight - this.menu.offsetHeight - 8);
    Object.assign(this.menu.style, { left: `${Math.max(8, left)}px`, top: `${top}px` });
    this.menu.querySelector("button").focus();
  }

  #onSearch() {
    this.#search = this.elements.search.value.trim();
    this.refreshSoon(SEARCH_PAUSE);
  }

  #onSearchKey(event) {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      this.elements.list.querySelector("a")?.focus();
    } else if (event.key === "Escape" && this.elements.search.value) {
      event.preventDefault();
      this.elements.search.value = "";
      this.#onSearch();
    }
  }

  #onListKey(event) {
    if (event.target.matches("a")) moveFocus(event, [...this.elements.list.querySelectorAll("a")]);
  }
}

function moveFocus(event, elements) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const at = elements.indexOf(document.activeElement);
  elements[(at + step + elements.length) % elements.length]?.focus();
}
