// The panel beside the conversation: tabs, opening and closing, where the focus goes. What is in it draws itself.

import { recall, remember } from "../app/lib/storage.ts";

const PHONE = matchMedia("(max-width: 759px)");

export class Panel {
  #opener = null;
  #isOpen = false;

  /** `elements`: {panel, close, tabs, openers, behind}. `views`: by tab name, each {element, show(conversation), hide()}. */
  constructor(elements, views) {
    this.elements = elements;
    this.views = views;
    this.tab = recall("panel", {}).tab ?? "context";
    this.#bind();
    if (recall("panel", {}).isOpen && !PHONE.matches) this.open(this.tab, { takesFocus: false });
  }

  #bind() {
    const { panel, close, tabs, openers } = this.elements;
    close.addEventListener("click", () => this.close());
    for (const tab of tabs) tab.addEventListener("click", () => this.select(nameOf(tab)));
    tabs[0].parentElement.addEventListener("keydown", (event) => this.#onTabKey(event));
    for (const opener of openers) opener.addEventListener("click", () => this.#onOpener(opener));
    panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      event.preventDefault();
      this.close();
    });
    PHONE.addEventListener("change", () => this.#cover());
  }

  /** The conversation that it is about from now on. */
  show(conversation) {
    this.conversation = conversation;
    this.#draw();
  }

  open(tab = this.tab, { opener = null, takesFocus = true } = {}) {
    this.#opener = opener ?? this.#opener;
    this.#isOpen = true;
    this.elements.panel.hidden = false;
    this.select(tab);
    this.#cover();
    if (takesFocus) this.#tabOf(this.tab).focus();
  }

  close() {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.elements.panel.hidden = true;
    this.#keep();
    this.#cover();
    this.#draw();
    const usual = this.elements.openers.toSorted((a, b) => a.dataset.panel.length - b.dataset.panel.length); // the one in the head first
    [this.#opener, ...usual].find((button) => button?.offsetParent)?.focus();
    this.#opener = null;
  }

  select(tab) {
    this.tab = tab;
    for (const button of this.elements.tabs) {
      const isChosen = nameOf(button) === tab;
      button.setAttribute("aria-selected", String(isChosen));
      button.tabIndex = isChosen ? 0 : -1;
      this.views[nameOf(button)].element.hidden = !isChosen;
    }
    this.#keep();
    this.#draw();
  }

  #onOpener(opener) {
    const wanted = opener.dataset.panel;
    if (this.#isOpen && (!wanted || wanted === this.tab)) this.close();
    else this.open(wanted || this.tab, { opener });
  }

  #onTabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -1, End: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const { tabs } = this.elements;
    const next = tabs[(tabs.indexOf(this.#tabOf(this.tab)) + step + tabs.length) % tabs.length];
    this.select(nameOf(next));
    next.focus();
  }

  #tabOf(name) {
    return this.elements.tabs.find((tab) => nameOf(tab) === name);
  }

  #keep() {
    remember("panel", { isOpen: this.#isOpen, tab: this.tab });
  }

  /** On a phone it is all there is: what lies behind cannot be reached. */
  #cover() {
    for (const element of this.elements.behind) element.inert = this.#isOpen && PHONE.matches;
    for (const opener of this.elements.openers) opener.setAttribute("aria-expanded", String(this.#isOpen));
  }

  #draw() {
    for (const [name, view] of Object.entries(this.views)) {
      if (this.#isOpen && name === this.tab && this.conversation) view.show(this.conversation);
      else view.hide();
    }
  }
}

const nameOf = (tab) => tab.id.replace("tab-", "");
