// What a conversation is about, in a few sentences, and what it has changed of what is remembered.

import { confirmForget } from "./dialogs.js";
import { diffNode } from "./diff_view.js";
import { h } from "./dom.js";
import { editor } from "./editor.js";
import { timeLabel } from "./format.js";
import { changesText, documentFacts, lineCounts, NOTHING, originOf, spokenCounts, stateOf } from "./overview_facts.js";

const PAUSE = 250;
const AGAIN = 3000; // while it is being written: the bell that says it is there may be lost
const seg = encodeURIComponent;

export class OverviewView {
  #conversation = null;
  #off = [];
  #turn = 0; // answers to older questions do not count
  #timer = 0;
  #open = new Set(); // changed texts that a person has opened
  #isEditing = false;

  constructor(element, api) {
    Object.assign(this, { element, api });
    this.body = h("div", { class: "overview" });
    this.live = h("p", { class: "visually-hidden", role: "status" });
    element.append(this.body, this.live);
  }

  show(conversation) {
    if (this.#conversation === conversation && this.shownId === conversation.instance.id) return;
    this.hide();
    this.#conversation = conversation;
    this.shownId = conversation.instance.id;
    const again = () => this.#later();
    this.#off = ["spoken-end", "reconnected"].map((name) => conversation.on(name, again));
    this.#off.push(conversation.on("titled", ({ id }) => id === conversation.instance.id && again()));
    this.#off.push(conversation.on("switched", () => this.#begin()));
    this.#off.push(conversation.on("messages", () => conversation.leafId !== this.readLeafId && again())); // another branch
    this.#begin();
  }

  #begin() {
    this.#isEditing = false;
    this.#open.clear();
    this.body.replaceChildren(h("p", { class: "muted", text: this.shownId ? "Reading what it is about" : "Nothing yet: a conversation begins with its first message." }));
    if (this.shownId) this.read();
  }

  hide() {
    for (const off of this.#off) off();
    this.#off = [];
    this.#conversation = null;
    this.#turn += 1;
    this.#isEditing = false;
    clearTimeout(this.#timer);
  }

  #later(pause = PAUSE) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.read(), pause);
  }

  async read() {
    if (!this.#conversation) return; // put away meanwhile
    const turn = ++this.#turn;
    clearTimeout(this.#timer);
    this.readLeafId = this.#conversation.leafId;
    try {
      this.sessionId = (await this.api.instance(this.shownId)).session_id ?? "";
      const summary = this.sessionId ? await this.#request("GET") : null;
      if (turn !== this.#turn) return;
      if (summary) this.#draw(summary);
      else this.body.replaceChildren(h("p", { class: "muted", text: "Nothing was said yet." }));
    } catch (error) {
      if (turn === this.#turn) this.#fail(error);
    }
  }

  #request(method, body) {
    return this.api.request(method, `/sessions/${seg(this.sessionId)}/summary`, body);
  }

  #fail(error) {
    const again = h("button", { type: "button", class: "button", text: "Try again", onclick: () => this.read() });
    this.body.replaceChildren(h("p", { class: "is-error", role: "alert", text: error.message }), h("p", { class: "panel-actions" }, again));
  }

  #draw(summary) {
    if (this.summary && stateOf(this.summary) && !stateOf(summary)) this.live.textContent = summary.error || summary.text;
    this.summary = summary;
    if (stateOf(summary)) this.#later(AGAIN);
    if (this.#isEditing) return; // what a person writes stays until it is stored or given up
    const kept = this.body.contains(document.activeElement) ? document.activeElement.dataset.keep : null;
    for (const piece of this.body.querySelectorAll("details")) this.#note(piece); // its own event may be still on its way
    this.about = h("section", { class: "overview-about", "aria-label": "In short" }, this.#aboutNodes(summary));
    this.body.replaceChildren(this.about, ...this.#changeNodes(summary));
    if (kept) (this.body.querySelector(`[data-keep="${CSS.escape(kept)}"]`) ?? this.body.querySelector("button"))?.focus({ preventScroll: true });
  }

  #aboutNodes(summary) {
    const isBusy = Boolean(stateOf(summary));
    const ask = h("button", { type: "button", class: "button", "data-keep": "ask", text: summary.text ? "Write it anew" : "Have a model write it", onclick: () => this.#ask() });
    if (isBusy) ask.setAttribute("aria-disabled", "true"); // it keeps the focus, and does nothing
    return [
      h("h2", { text: "In short" }),
      h("p", summary.text ? { class: "overview-text", dir: "auto", text: summary.text } : { class: "muted", text: NOTHING }),
      summary.text ? h("p", { class: "muted", text: originOf(summary, timeLabel(summary.written_at)) }) : null,
      isBusy ? h("p", { class: "muted", text: stateOf(summary) }) : null,
      summary.error ? h("p", { class: "is-error", text: summary.error }) : null,
      h(
        "p",
        { class: "panel-actions" },
        ask,
        h("button", { type: "button", class: "button", "data-keep": "edit", text: summary.text ? "Edit" : "Write it yourself", onclick: () => this.#edit() }),
        summary.text ? h("button", { type: "button", class: "button", "data-keep": "delete", text: "Delete", onclick: () => this.#forget() }) : null,
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
      if (this.#conversation) this.#draw({ ...this.summary, error: error.message });
    }
  }

  #changeNodes(summary) {
    return [
      h("h2", { text: "Changed here" }),
      h("p", { class: "muted", text: changesText(summary) }),
      ...summary.documents.map((document) => this.#document(document)),
    ];
  }

  #note(piece) {
    if (!piece.isConnected) return;
    if (piece.open) this.#open.add(piece.dataset.key);
    else this.#open.delete(piece.dataset.key);
  }

  #document(changed) {
    const { name, note } = documentFacts(changed);
    const key = `${changed.of} ${name}`;
    const counts = lineCounts(changed);
    const body = h("div", { class: "overview-diff" });
    const summary = h(
      "summary",
      { "data-keep": key },
      h("span", { class: "context-label" }, h("span", { dir: "auto", text: name }), note ? h("span", { class: "muted", text: ` ${note}` }) : null),
      counts ? h("span", { class: "context-tokens" }, h("span", { "aria-hidden": "true", text: counts }), h("span", { class: "visually-hidden", text: spokenCounts(changed) })) : null,
    );
    const details = h("details", { class: "context-piece", dataset: { key }, open: this.#open.has(key) }, summary, body);
    const fill = () => {
      this.#note(details);
      if (!details.open || body.childElementCount) return;
      if (changed.patch) body.append(diffNode(changed.patch, `What changed of ${name}`));
      if (changed.is_cut) body.append(h("p", { class: "muted", text: changed.patch ? "The rest is too long to show." : "It is too long to compare." }));
    };
    details.addEventListener("toggle", fill);
    if (details.open) fill();
    return details;
  }
}
