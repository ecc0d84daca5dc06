// What a conversation is about, in a few sentences, and what it has changed of what is remembered.

import { confirmForget } from "./dialogs.js";
import { diffNode } from "./diff_view.js";
import { h } from "./dom.js";
import { editor } from "./editor.js";
import { timeLabel } from "./format.js";
import {
  changesText,
  documentFacts,
  lineCounts,
  originOf,
  spokenCounts,
  stateOf,
} from "../app/store/overview_facts.ts";
import { OpenFolds, PanelView } from "./panel_view.js";

const AGAIN = 3000; // while it is being written: the notification of its end may be lost
const seg = encodeURIComponent;

export class OverviewView extends PanelView {
  #turn = 0; // answers to older questions do not count
  #folds = new OpenFolds();
  #isEditing = false;

  constructor(element, api) {
    super(element, api, "overview");
    this.live = h("p", { class: "visually-hidden", role: "status" });
    element.append(this.live);
  }

  follow(on, again) {
    for (const name of ["spoken-end", "reconnected"]) on(name, again);
    on("titled", ({ id }) => id === this.shownId && again());
    on("switched", () => this.begin());
    on("messages", () => this.conversation.leafId !== this.readLeafId && again()); // another branch
  }

  begin() {
    this.#isEditing = false;
    this.summary = null;
    this.#folds.clear();
    this.say(this.shownId ? "Reading what it is about" : "Nothing yet: a conversation begins with its first message.");
    if (this.shownId) this.read();
  }

  hide() {
    super.hide();
    this.#turn += 1;
    this.#isEditing = false;
  }

  async read() {
    if (!this.conversation) return; // put away meanwhile
    const turn = ++this.#turn;
    this.stopWaiting();
    this.readLeafId = this.conversation.leafId;
    try {
      this.sessionId = (await this.api.instance(this.shownId)).session_id ?? "";
      const summary = this.sessionId ? await this.#request("GET") : null;
      if (turn !== this.#turn) return;
      if (summary) this.#draw(summary);
      else this.say("Nothing was said yet.");
    } catch (error) {
      if (turn === this.#turn) this.fail(error);
    }
  }

  #request(method, body) {
    return this.api.request(method, `/sessions/${seg(this.sessionId)}/summary`, body);
  }

  #draw(summary) {
    if (this.summary && stateOf(this.summary) && !stateOf(summary)) {
      this.live.textContent = summary.error || summary.text;
    }
    this.summary = summary;
    if (stateOf(summary)) this.later(AGAIN);
    if (this.#isEditing) return; // what a person writes stays until it is stored or given up
    const kept = this.body.contains(document.activeElement) ? document.activeElement.getAttribute("data-keep") : null;
    this.#folds.noteAll(this.body);
    this.about = h("section", { class: "overview-about", "aria-label": "In short" }, this.#aboutNodes(summary));
    this.body.replaceChildren(this.about, ...this.#changeNodes(summary));
    if (kept) {
      (this.body.querySelector(`[data-keep="${CSS.escape(kept)}"]`) ?? this.body.querySelector("button"))?.focus({
        preventScroll: true,
      });
    }
  }

  #aboutNodes(summary) {
    const isBusy = Boolean(stateOf(summary));
    const ask = h("button", {
      type: "button",
      class: "button",
      "data-keep": "ask",
      text: summary.text ? "Write it anew" : "Have a model write it",
      onclick: () => this.#ask(),
    });
    if (isBusy) ask.setAttribute("aria-disabled", "true"); // it keeps the focus, and does nothing
    return [
      h("h2", { text: "In short" }),
      h(
        "p",
        summary.text
          ? { class: "overview-text", dir: "auto", text: summary.text }
          : { class: "muted", text: "There is no summary of this conversation yet." },
      ),
      summary.text ? h("p", { class: "muted", text: originOf(summary, timeLabel(summary.written_at)) }) : null,
      isBusy ? h("p", { class: "muted", text: stateOf(summary) }) : null,
      summary.error ? h("p", { class: "is-error", text: summary.error }) : null,
      h(
        "p",
        { class: "panel-actions" },
        ask,
        h("button", {
          type: "button",
          class: "button",
          "data-keep": "edit",
          text: summary.text ? "Edit" : "Write it yourself",
          onclick: () => this.#edit(),
        }),
        summary.text
          ? h("button", {
            type: "button",
            class: "button",
            "data-keep": "delete",
            text: "Delete",
            onclick: () => this.#forget(),
          })
          : null,
      ),
    ];
  }

  async #ask() {
    if (stateOf(this.summary)) return;
    await this.#do(() => this.#request("POST"));
  }

  #edit() {
    this.#isEditing = true;
    const form = editor({
      label: "What this conversation is about",
      text: this.summary.text,
      save: (text) => this.#store(text),
      done: () => this.#back(),
    });
    this.about.replaceChildren(h("h2", { text: "In short" }), form);
    form.querySelector("textarea").focus();
  }

  /** Resolves to what went wrong, in words; empty when it is stored. */
  async #store(text) {
    try {
      this.summary = await this.#request("PUT", { text });
      return "";
    } catch (error) {
      return error.message;
    }
  }

  #back() {
    this.#isEditing = false;
    this.#draw(this.summary);
    this.about.querySelector('[data-keep="edit"]').focus();
  }

  async #forget() {
    if (!(await confirmForget("Delete this text?", "The conversation itself stays as it is."))) return;
    await this.#do(() => this.#request("DELETE"));
    this.about?.querySelector("button")?.focus();
  }

  async #do(verb) {
    try {
      await verb();
      await this.read();
    } catch (error) {
      if (this.conversation) this.#draw({ ...this.summary, error: error.message });
    }
  }

  #changeNodes(summary) {
    return [
      h("h2", { text: "Changed here" }),
      h("p", { class: "muted", text: changesText(summary) }),
      ...summary.documents.map((document) => this.#document(document)),
    ];
  }

  #document(changed) {
    const { name, note } = documentFacts(changed);
    const counts = lineCounts(changed);
    const summary = [
      h(
        "span",
        { class: "context-label" },
        h("span", { dir: "auto", text: name }),
        note ? h("span", { class: "muted", text: ` ${note}` }) : null,
      ),
      counts
        ? h(
          "span",
          { class: "context-tokens" },
          h("span", { "aria-hidden": "true", text: counts }),
          h("span", { class: "visually-hidden", text: spokenCounts(changed) }),
        )
        : null,
    ];
    return this.#folds.make(`${changed.of} ${name}`, summary, h("div", { class: "overview-diff" }), (body) => {
      if (changed.patch) body.append(diffNode(changed.patch, `What changed of ${name}`));
      if (changed.is_cut) {
        body.append(
          h("p", {
            class: "muted",
            text: changed.patch ? "The rest is too long to show." : "It is too long to compare.",
          }),
        );
      }
    });
  }
}
