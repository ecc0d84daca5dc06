// Search within the open conversation: a field under its head, the hits below it, each opens at its place.

import { setText } from "./dom.js";
import { HitsView } from "./hits_view.js";
import { moveFocus } from "./menu.js";

const PAUSE = 180;
const WIDE = matchMedia("(min-width: 760px)");

export class FindBar {
  #timer = 0;
  #shownFor = "";

  /** `elements`: {bar, input, close, button, list, note, more, heading}. `on`: {base, open(hit, keepsFocus)}. */
  constructor(elements, api, on) {
    this.elements = elements;
    const open = (hit) => this.#open(hit);
    this.hits = new HitsView(
      elements,
      api,
      { base: on.base, open, found: () => this.#count(), isInside: true },
      () => ({ instance: this.#shownFor }),
    );
    this.on = on;
    elements.button.addEventListener("click", () => (elements.bar.hidden ? this.open() : this.close()));
    elements.close.addEventListener("click", () => this.close());
    elements.input.addEventListener("input", () => this.#search());
    elements.bar.addEventListener("submit", (event) => event.preventDefault());
    elements.bar.addEventListener("keydown", (event) => this.#onKey(event));
  }

  /** The conversation that is searched; another one begins without a search. */
  show(instanceId) {
    this.elements.button.hidden = !instanceId;
    if (instanceId === this.#shownFor) return;
    this.#shownFor = instanceId;
    this.elements.input.value = "";
    this.hits.search("");
    this.#toggle(false);
  }

  open() {
    this.#toggle(true);
    this.elements.input.focus();
    this.elements.input.select();
  }

  close() {
    this.#toggle(false);
    this.elements.button.focus();
  }

  #toggle(isOpen) {
    this.elements.bar.hidden = !isOpen;
    this.elements.button.setAttribute("aria-expanded", String(isOpen));
  }

  #search() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.hits.search(this.elements.input.value.trim()), PAUSE);
  }

  /** The count is announced to those who do not see the list. */
  #count() {
    const { count } = this.hits;
    setText(this.elements.heading, count ? `${count}${this.elements.more.hidden ? "" : "+"} found` : "");
  }

  #onKey(event) {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.close();
    } else moveFocus(event, [this.elements.input, ...this.elements.list.querySelectorAll("a")]);
  }

  /** On a wide screen the hits stay beside what they lead to, and the focus with them; a narrow one has no room for both. */
  #open(hit) {
    this.elements.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    this.elements.list.querySelector(`[data-message="${CSS.escape(hit.messageId)}"] a`)?.setAttribute(
      "aria-current",
      "true",
    );
    if (!WIDE.matches) this.#toggle(false);
    this.on.open(hit, WIDE.matches);
  }
}
