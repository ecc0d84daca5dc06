// One block of what is remembered: its text or its entries, its history, and what a person can do about them.

import { kindOf, several, usageOf } from "./context_facts.js";
import { confirmForget, notice } from "./dialogs.js";
import { h, setText } from "./dom.js";
import { ChangeList } from "./change_list.js";
import { editor } from "./editor.js";

export class BlockCard {
  /** `store`: a `Remembered`. `changed()` is called when something else is stored than before. */
  constructor(store, changed) {
    Object.assign(this, { store, changed, isEditing: false });
    this.title = h("h3", { dir: "auto" });
    this.facts = h("p", { class: "muted" });
    this.words = h("p", { class: "muted" });
    this.body = h("div", { class: "block-body" });
    this.buttons = h("p", { class: "block-buttons" });
    this.changes = new ChangeList(store, `block:${store.label}`, { restore: (text) => this.#store(text), current: () => this.block.content });
    this.element = h("article", { class: "block" }, this.title, this.facts, this.words, this.body, this.buttons, this.changes.element);
  }

  update(block) {
    const isSame = this.block && JSON.stringify(this.block) === JSON.stringify(block);
    this.block = block;
    if (isSame || this.isEditing) return;
    this.hasEntries = block.is_skill || block.is_searchable || block.entry_count > 0;
    const isPlain = !this.hasEntries || Boolean(block.content && block.isElsewhere);
    setText(this.title, block.label);
    setText(this.facts, this.#factsOf(block, isPlain));
    setText(this.words, block.description ?? "");
    this.words.hidden = !block.description;
    this.canEdit = block.writable && isPlain && !(block.is_skill || block.is_searchable);
    this.#show();
    this.changes.element.hidden = block.of === "agent" && !block.writable;
    this.changes.refresh();
  }

  #factsOf(block, isPlain) {
    const what = block.isElsewhere ? "not read by this agent" : kindOf({ ...block, of: "" });
    return [what, isPlain ? usageOf(block) : "", block.entry_count ? several(block.entry_count, "entry").replace(/entrys$/, "entries") : ""].filter(Boolean).join(" · ");
  }

  #show() {
    this.isEditing = false;
    const { block } = this;
    const nodes = [];
    if (block.content && !(block.is_skill || block.is_searchable)) nodes.push(h("p", { class: "block-text", dir: "auto", text: block.content }));
    else if (!this.hasEntries) nodes.push(h("p", { class: "muted", text: "Empty." }));
    if (this.hasEntries) nodes.push((this.list ??= this.#entries()));
    this.body.replaceChildren(...nodes);
    const { label } = this.store;
    const isKept = block.of !== "agent" || block.writable;
    this.buttons.replaceChildren(
      ...[
        this.canEdit && h("button", { type: "button", class: "quiet", "aria-label": `Edit ${label}`, text: "Edit", onclick: () => this.#edit() }),
        isKept && (block.content || block.entry_count > 0) && h("button", { type: "button", class: "quiet", "aria-label": `Delete ${label}`, text: "Delete", onclick: () => this.#forget() }),
      ].filter(Boolean),
    );
  }

  #edit() {
    this.isEditing = true;
    const form = editor({
      label: `Text of ${this.store.label}`,
      text: this.block.content,
      save: (text) => this.#store(text),
      done: () => {
        this.#show();
        this.buttons.querySelector("button")?.focus();
      },
    });
    this.buttons.replaceChildren();
    this.body.replaceChildren(form);
    form.querySelector("textarea").focus();
  }

  /** Resolves to what went wrong, in words; empty when it is stored. */
  async #store(text) {
    try {
      await this.store.write(text);
    } catch (error) {
      return error.message;
    }
    this.block = { ...this.block, content: text };
    this.changed();
    return "";
  }

  async #forget() {
    const { label } = this.store;
    const answer = await confirmForget(`Delete what “${label}” holds?`, "No model reads it any more.", "Also delete the earlier texts from its history");
    if (!answer) return;
    await this.#do(() => this.store.forget(answer.isChecked));
    this.element.parentElement?.querySelector("button")?.focus();
  }

  async #do(verb) {
    try {
      await verb();
    } catch (error) {
      notice(error.message);
    }
    this.list = null;
    this.changed();
  }

  #entries() {
    const list = h("ul", { class: "entries" });
    const more = h("button", { type: "button", class: "quiet", text: "Show more", hidden: true });
    let after = "";
    const load = async () => {
      try {
        const page = await this.store.entries(after);
        list.append(...page.items.map((entry) => this.#entry(entry)));
        after = page.next_after ?? "";
        more.hidden = !after;
        if (!list.childElementCount) list.append(h("li", { class: "muted", text: "No entries." }));
      } catch {
        list.append(h("li", { class: "muted", text: this.block.content || "Its entries are kept elsewhere." }));
      }
    };
    more.addEventListener("click", load);
    load();
    return h("div", {}, list, more);
  }

  #entry(entry) {
    const title = entry.title || entry.key;
    const body = h("div", { class: "entry-body" });
    const show = () => {
      const buttons = this.block.writable
        ? h("p", { class: "block-buttons" }, h("button", { type: "button", class: "quiet", "aria-label": `Edit ${title}`, text: "Edit", onclick: edit }), h("button", { type: "button", class: "quiet", "aria-label": `Delete ${title}`, text: "Delete", onclick: remove }))
        : null;
      body.replaceChildren(...[entry.description && h("p", { class: "muted", text: entry.description }), h("p", { class: "block-text", dir: "auto", text: entry.content }), buttons].filter(Boolean));
    };
    const edit = () => {
      const form = editor({ label: `Text of ${title}`, text: entry.content, save, done: () => { show(); body.querySelector("button")?.focus(); } });
      body.replaceChildren(form);
      form.querySelector("textarea").focus();
    };
    const save = async (text) => {
      try {
        await this.store.writeEntry(entry.key, text);
      } catch (error) {
        return error.message;
      }
      entry.content = text;
      return "";
    };
    const remove = async () => {
      if (!(await confirmForget(`Delete “${title}”?`, "No model reads it any more. Its history keeps what it was."))) return;
      await this.#do(() => this.store.deleteEntry(entry.key));
      this.#show();
    };
    const details = h("details", { class: "entry" }, h("summary", { dir: "auto", text: title }), body);
    details.addEventListener("toggle", () => details.open && !body.childElementCount && show());
    return h("li", {}, details);
  }
}
