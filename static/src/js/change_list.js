// Who changed a block, when, from what to what. An earlier text can be set again.

import { h } from "./dom.js";
import { fullTime, timeLabel } from "../app/lib/format.ts";
import { notice } from "./dialogs.js";
import { whoDid } from "../app/store/remembered.ts";

export class ChangeList {
  #next = null;

  /** `restore(text)` stores an earlier text and resolves to a problem. `current()`: the present text. `of`: the owner. */
  constructor(store, subject, { restore, current, of = store.label }) {
    this.store = store;
    this.subject = subject;
    this.restore = restore;
    this.current = current;
    this.list = h("ol", { class: "changes" });
    this.more = h("button", {
      type: "button",
      class: "quiet",
      text: "Show more",
      hidden: true,
      onclick: () => this.#load(),
    });
    this.element = h(
      "details",
      { class: "change-list" },
      h("summary", {}, "History", h("span", { class: "visually-hidden", text: ` of ${of}` })),
      this.list,
      this.more,
    );
    this.element.addEventListener("toggle", () => this.element.open && !this.list.childElementCount && this.#load());
  }

  /** Something changed: an open list is read again, a closed one when it is opened. */
  refresh() {
    this.#next = null;
    if (this.element.open) this.#load(true);
    else this.list.replaceChildren();
  }

  async #load(isFresh = false) {
    try {
      const page = await this.store.changes(this.subject, isFresh ? null : this.#next);
      const rows = page.items.map((change) => this.#row(change));
      if (isFresh) this.list.replaceChildren(...rows);
      else this.list.append(...rows);
      this.#next = page.next_before;
      this.more.hidden = !this.#next;
      if (!this.list.childElementCount) this.list.append(h("li", { class: "muted", text: "Nothing was changed yet." }));
    } catch (error) {
      this.list.replaceChildren(h("li", { class: "is-error", text: error.message }));
    }
  }

  #row(change) {
    const when = h("time", {
      class: "muted",
      datetime: change.created_at,
      title: fullTime(change.created_at),
      text: timeLabel(change.created_at),
    });
    const was = change.action === "delete" ? change.before : change.after;
    const back = was && was !== this.current() &&
      h("button", {
        type: "button",
        class: "quiet",
        "aria-label": `Set the text of ${timeLabel(change.created_at)} again`,
        text: "Set this text again",
        onclick: () => this.#restore(was),
      });
    return h(
      "li",
      {},
      h("p", {}, `${whoDid(change)} `, when),
      was ? h("p", { class: "block-text", dir: "auto", text: was }) : null,
      back ? h("p", {}, back) : null,
    );
  }

  async #restore(text) {
    const wrong = await this.restore(text);
    notice(wrong || "Set again.");
  }
}
