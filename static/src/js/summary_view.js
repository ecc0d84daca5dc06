// The line in the transcript that says what was summarised: it opens, can be reworded, and can be undone.

import { h, setText } from "./dom.js";
import { editor } from "./editor.js";
import { confirmUndo } from "./dialogs.js";
import { several } from "./counts.js";
import { count } from "../app/store/context_facts.ts";
import { fullTime, timeLabel } from "./format.js";
import { LiveText } from "./live_text.js";
import { fold } from "./part_views.js";

const CAUSES = { manual: "asked for", auto: "by itself", overflow: "to make room", added: "by code" };

export class SummaryView {
  constructor(item, context) {
    this.context = context;
    this.fold = fold("fold", "summary", () => this.#show());
    this.element = h(
      "li",
      { class: "summary-line", dataset: { compaction: item.compaction.id } },
      h("h2", { class: "visually-hidden", text: "Summary" }),
      this.fold.details,
    );
    this.update(item);
  }

  update(item) {
    const key = JSON.stringify(item);
    if (key === this.key) return;
    this.key = key;
    this.item = item;
    const { compaction, isUsed } = item;
    this.element.classList.toggle("is-unused", !isUsed);
    setText(
      this.fold.label,
      `${isUsed ? "Summary" : "Older summary"} of ${several(compaction.message_count, "message")}`,
    );
    setText(this.fold.note, noteOf(item));
    if (this.fold.isBuilt() && !this.isEditing) this.#show();
  }

  #show() {
    this.isEditing = false;
    const { compaction, isUsed } = this.item;
    const what = isUsed
      ? "The model reads this text instead of the messages above. The messages themselves are kept."
      : "A later summary stands for these messages now. Undo that one, and this one counts again.";
    const text = h("div", { class: "md summary-text" });
    new LiveText(text).update(compaction.summary, false);
    const buttons = this.context.isReadOnly ? [] : [
      h("button", { type: "button", class: "button", text: "Edit summary", onclick: () => this.#edit() }),
      h("button", { type: "button", class: "button", text: "Undo", onclick: () => this.#undo() }),
    ];
    this.fold.body.replaceChildren(
      h("p", { class: "muted", text: what }),
      text,
      h("p", { class: "muted summary-facts", text: factsOf(compaction) }),
      ...(buttons.length ? [h("p", { class: "summary-actions" }, buttons)] : []),
    );
  }

  #edit() {
    this.isEditing = true;
    const form = editor({
      label: "What the model reads instead of the messages",
      text: this.item.compaction.summary,
      save: async (
        text,
      ) => ((await this.context.act("rewordSummary", null, { id: this.item.compaction.id, text }))
        ? ""
        : "It was not stored."),
      done: () => this.#back(),
    });
    this.fold.body.replaceChildren(form);
    form.querySelector("textarea").focus();
  }

  #back() {
    this.#show();
    this.fold.body.querySelector("button")?.focus();
  }

  async #undo() {
    if (await confirmUndo(this.item.compaction.message_count)) {
      this.context.act("undoSummary", null, { id: this.item.compaction.id });
    }
  }

  dispose() {
    this.element.remove();
  }
}

function noteOf({ compaction }) {
  const { tokens_before: before, tokens_after: after } = compaction;
  return [
    CAUSES[compaction.trigger],
    timeLabel(compaction.created_at),
    before > 0 && `${count(before)} to ${several(after, "token")}`,
    compaction.edited_at && "edited",
  ].filter(Boolean).join(" · ");
}

function factsOf(compaction) {
  const made = `Made ${fullTime(compaction.created_at)}${
    compaction.model_name ? ` by ${compaction.model_name}` : ""
  }, ${CAUSES[compaction.trigger] ?? compaction.trigger}.`;
  const sizes = compaction.tokens_before > 0
    ? ` The model read about ${several(compaction.tokens_before, "token")} before and ${
      count(compaction.tokens_after)
    } after.`
    : "";
  return made + sizes + (compaction.edited_at ? ` Edited ${fullTime(compaction.edited_at)}.` : "");
}

/** Views by compaction id, made and let go as the lines come and go. */
export class SummaryLines {
  #views = new Map();

  constructor(context) {
    this.context = context;
  }

  /** Elements of the lines that follow a message. */
  after(items) {
    return items.map((item) => {
      const { id } = item.compaction;
      if (!this.#views.has(id)) this.#views.set(id, new SummaryView(item, this.context));
      const view = this.#views.get(id);
      view.update(item);
      return view.element;
    });
  }

  /** Forget all but these. */
  keep(ids) {
    for (const [id, view] of this.#views) {
      if (ids.has(id)) continue;
      view.dispose();
      this.#views.delete(id);
    }
  }
}
