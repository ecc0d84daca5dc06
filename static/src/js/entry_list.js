// The entries of a block that holds documents: each with its text, its history, and what a person can do about it.

import { ChangeList } from "./change_list.js";
import { confirmForget, notice } from "./dialogs.js";
import { h } from "./dom.js";
import { editor } from "./editor.js";

export class EntryList {
  #after = "";

  /**
   * `store`: a `Remembered`. `changed()` is called when an entry has come or gone. `open`: keys of the entries that are open,
   * which outlives the list; `focused`: the key of the one whose summary gets the focus if nothing else has it.
   */
  constructor(store, { isWritable, changed, elsewhere, open, focused }) {
    this.store = store;
    this.isWritable = isWritable;
    this.changed = changed;
    this.elsewhere = elsewhere;
    this.open = open;
    this.focused = focused;
    this.list = h("ul", { class: "entries" });
    this.more = h("button", {
      type: "button",
      class: "quiet",
      text: "Show more",
      hidden: true,
      onclick: () => this.#load(),
    });
    this.add = h("button", {
      type: "button",
      class: "quiet",
      "aria-label": `Add an entry to ${store.label}`,
      text: "Add an entry",
      hidden: !isWritable,
      onclick: () => this.#create(),
    });
    this.adding = h("div", {});
    this.element = h("div", {}, this.list, h("p", { class: "block-buttons" }, this.more, this.add), this.adding);
    this.#load();
  }

  async #load() {
    try {
      const page = await this.store.entries(this.#after);
      this.list.append(...page.items.map((entry) => this.#row(entry)));
      this.#refocus();
      this.#after = page.next_after ?? "";
      this.more.hidden = !this.#after;
      if (!this.list.childElementCount) this.list.append(h("li", { class: "muted", text: "No entries." }));
    } catch {
      this.list.append(h("li", { class: "muted", text: this.elsewhere || "Its entries are kept elsewhere." }));
    }
  }

  /** Who was at an entry of the former list is at the same one here. */
  #refocus() {
    const summary = this.focused && this.list.querySelector(`[data-key="${CSS.escape(this.focused)}"] > summary`);
    if (summary && document.activeElement === document.body) summary.focus({ preventScroll: true });
  }

  #create() {
    const done = () => {
      this.adding.replaceChildren();
      this.add.hidden = false;
      this.add.focus();
    };
    const save = (text, name) => this.#try(() => this.store.writeEntry(name, text), true);
    const form = editor({ label: "Text", text: "", named: "Name, as the model calls it", save, done });
    this.add.hidden = true;
    this.adding.replaceChildren(form);
    form.querySelector("input").focus();
  }

  /** Resolves to what went wrong, in words; empty when it is stored. */
  async #try(verb, hasComeOrGone = false) {
    try {
      await verb();
    } catch (error) {
      return error.message;
    }
    if (hasComeOrGone) this.changed();
    return "";
  }

  #row(entry) {
    const title = entry.title || entry.key;
    const body = h("div", { class: "entry-body" });
    const write = async (text) => {
      const wrong = await this.#try(() => this.store.writeEntry(entry.key, text));
      if (!wrong) entry.content = text;
      return wrong;
    };
    const restore = async (text) => {
      const wrong = await write(text);
      if (!wrong) show();
      return wrong;
    };
    const changes = new ChangeList(this.store, `entry:${this.store.label}/${entry.key}`, {
      restore,
      current: () => entry.content,
      of: title,
    });
    const show = () => {
      const buttons = h("p", { class: "block-buttons" }, quiet("Edit", title, edit), quiet("Delete", title, remove));
      body.replaceChildren(
        ...[
          entry.description && h("p", { class: "muted", text: entry.description }),
          h("p", { class: "block-text", dir: "auto", text: entry.content }),
          this.isWritable && buttons,
          this.isWritable && changes.element,
        ].filter(Boolean),
      );
      changes.refresh();
    };
    const edit = () => {
      const form = editor({
        label: `Text of ${title}`,
        text: entry.content,
        save: write,
        done: () => {
          show();
          body.querySelector("button")?.focus();
        },
      });
      body.replaceChildren(form);
      form.querySelector("textarea").focus();
    };
    const remove = async () => {
      if (!(await confirmForget(`Delete “${title}”?`, "No model reads it any more. Its history keeps what it was."))) {
        return;
      }
      const wrong = await this.#try(() => this.store.deleteEntry(entry.key), true);
      if (wrong) notice(wrong);
    };
    const details = h(
      "details",
      { class: "entry", dataset: { key: entry.key }, open: this.open.has(entry.key) },
      h("summary", { dir: "auto", text: title }),
      body,
    );
    const look = () => {
      this.open.note(details);
      if (details.open && !body.childElementCount) show();
    };
    details.addEventListener("toggle", look);
    if (details.open) look();
    return h("li", {}, details);
  }
}

const quiet = (verb, title, onclick) =>
  h("button", { type: "button", class: "quiet", "aria-label": `${verb} ${title}`, text: verb, onclick });
