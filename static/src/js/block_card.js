// One block of what is remembered: its text or its entries, its history, and what a person can do about them.

import { several } from "./counts.js";
import { kindOf, usageOf } from "../app/store/context_facts.ts";
import { confirmForget, notice } from "./dialogs.js";
import { h, setText } from "./dom.js";
import { ChangeList } from "./change_list.js";
import { editor } from "./editor.js";
import { EntryList } from "./entry_list.js";
import { OpenFolds } from "./panel_view.js";

export class BlockCard {
  /** `store`: a `Remembered`. `changed()` is called when something else is stored than before. */
  constructor(store, changed) {
    this.store = store;
    this.changed = changed;
    this.isEditing = false;
    this.open = new OpenFolds();
    this.title = h("h3", { dir: "auto" });
    this.facts = h("p", { class: "muted" });
    this.words = h("p", { class: "muted" });
    this.body = h("div", { class: "block-body" });
    this.buttons = h("p", { class: "block-buttons" });
    this.changes = new ChangeList(store, `block:${store.label}`, {
      restore: (text) => this.#store(text),
      current: () => this.block.content,
    });
    this.element = h(
      "article",
      { class: "block" },
      this.title,
      this.facts,
      this.words,
      this.body,
      this.buttons,
      this.changes.element,
    );
  }

  update(block) {
    const isSame = !this.isStale && this.block && JSON.stringify(this.block) === JSON.stringify(block);
    this.block = block;
    if (isSame || this.isEditing) return;
    this.isStale = false;
    const at = this.list?.contains(document.activeElement) && document.activeElement.closest("details");
    this.focused = at ? at.dataset.key : "";
    if (!this.list?.querySelector("form")) this.list = null; // no form is open in it
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
    return [
      what,
      isPlain ? usageOf(block) : "",
      block.entry_count ? several(block.entry_count, "entry").replace(/entrys$/, "entries") : "",
    ].filter(Boolean).join(" · ");
  }

  #show() {
    this.isEditing = false;
    const { block } = this;
    const nodes = [];
    if (block.content && !(block.is_skill || block.is_searchable)) {
      nodes.push(h("p", { class: "block-text", dir: "auto", text: block.content }));
    } else if (!this.hasEntries) nodes.push(h("p", { class: "muted", text: "Empty." }));
    if (this.hasEntries) nodes.push(this.list ??= this.#entries());
    this.body.replaceChildren(...nodes);
    const { label } = this.store;
    const isKept = block.of !== "agent" || block.writable;
    this.buttons.replaceChildren(
      ...[
        this.canEdit &&
        h("button", {
          type: "button",
          class: "quiet",
          "aria-label": `Edit ${label}`,
          text: "Edit",
          onclick: () => this.#edit(),
        }),
        isKept && (block.content || block.entry_count > 0) &&
        h("button", {
          type: "button",
          class: "quiet",
          "aria-label": `Delete ${label}`,
          text: "Delete",
          onclick: () => this.#forget(),
        }),
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
    const answer = await confirmForget(
      `Delete what “${label}” holds?`,
      "No model reads it any more.",
      "Also delete the earlier texts from its history",
    );
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
    await this.#changed();
  }

  /** Something has come or gone: it is drawn again, whatever the block itself says. */
  async #changed() {
    this.list = null;
    this.isStale = true;
    await this.changed();
    if (document.activeElement === document.body) {
      this.element.querySelector(".block-buttons button:not([hidden])")?.focus();
    }
  }

  #entries() {
    const { writable: isWritable, content: elsewhere } = this.block;
    const { open, focused } = this;
    return new EntryList(this.store, { isWritable, elsewhere, open, focused, changed: () => this.#changed() }).element;
  }
}
