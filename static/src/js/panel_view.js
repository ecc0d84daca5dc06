// What the views of the panel have in common: they follow one conversation while they are seen, and read again when it changed.

import { h } from "./dom.js";

const PAUSE = 250;

/** A subclass gives `begin()` (another conversation, or another history of it), `read()`, and what it listens to by `follow(on, again)`. */
export class PanelView {
  #off = [];
  #timer = 0;

  /** `name`: the class of its body. */
  constructor(element, api, name) {
    this.element = element;
    this.api = api;
    this.conversation = null;
    this.body = h("div", { class: name });
    element.append(this.body);
  }

  show(conversation) {
    if (this.conversation === conversation && this.shownId === conversation.instance.id) return;
    this.hide();
    this.conversation = conversation;
    this.shownId = conversation.instance.id;
    this.follow((name, handler) => this.#off.push(conversation.on(name, handler)), () => this.later());
    this.begin();
  }

  hide() {
    for (const off of this.#off) off();
    this.#off = [];
    this.stopWaiting();
    this.conversation = null;
  }

  /** Read again after a moment; what else changes meanwhile is read with it. */
  later(pause = PAUSE) {
    this.stopWaiting();
    this.#timer = setTimeout(() => this.read(), pause);
  }

  stopWaiting() {
    clearTimeout(this.#timer);
  }

  /** Begin with another conversation. */
  begin() {}

  /** Subscribe: `on(name, handler)` follows an event of the conversation, `again()` reads soon. */
  follow(_on, _again) {}

  /** Read what the view shows, and draw it. */
  read() {}

  say(text) {
    this.body.replaceChildren(h("p", { class: "muted", text }));
  }

  fail(error, again = () => this.read()) {
    const button = h("button", { type: "button", class: "button", text: "Try again", onclick: again });
    this.body.replaceChildren(
      h("p", { class: "is-error", role: "alert", text: error.message }),
      h("p", { class: "panel-actions" }, button),
    );
  }
}

/** Which folds of a view a person has opened: they stay open when it is drawn again. */
export class OpenFolds {
  #keys = new Set();

  has(key) {
    return this.#keys.has(key);
  }

  clear() {
    this.#keys.clear();
  }

  /** Look at one; its own event may be still on its way. */
  note(details) {
    if (!details.isConnected) return;
    if (details.open) this.#keys.add(details.dataset.key);
    else this.#keys.delete(details.dataset.key);
  }

  noteAll(body) {
    for (const details of body.querySelectorAll("details[data-key]")) this.note(details);
  }

  /** A fold whose body is filled by `fill(body)` when it is opened first. `key` also names it for the focus. */
  make(key, summary, body, fill) {
    const head = h("summary", { "data-keep": key }, ...summary);
    const details = h("details", { class: "context-piece", dataset: { key }, open: this.has(key) }, head, body);
    const look = () => {
      this.note(details);
      if (details.open && !body.childElementCount) fill(body);
    };
    details.addEventListener("toggle", look);
    if (details.open) look();
    return details;
  }
}
