// A menu of commands beside the button that opens it: the browser's own popover, with arrow keys.

import { h, icon } from "./dom.js";

/** Show a popover below its button, inside the window. */
export function openBeside(popover, button) {
  popover.showPopover();
  const place = button.getBoundingClientRect();
  const left = Math.min(place.left, innerWidth - popover.offsetWidth - 8);
  const top = Math.min(place.bottom + 4, innerHeight - popover.offsetHeight - 8);
  Object.assign(popover.style, { left: `${Math.max(8, left)}px`, top: `${Math.max(8, top)}px` });
}

/** Arrow keys among elements. */
export function moveFocus(event, elements) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !elements.length) return;
  event.preventDefault();
  const at = elements.indexOf(document.activeElement);
  elements[(at + step + elements.length) % elements.length]?.focus();
}

/** One menu element for many buttons. */
export class Menu {
  constructor(label) {
    this.element = h("div", { class: "menu", popover: "auto", role: "menu", "aria-label": label });
    this.element.addEventListener(
      "keydown",
      (event) => moveFocus(event, [...this.element.querySelectorAll("[role=menuitem]")]),
    );
    document.querySelector("main").append(this.element); // a landmark: what is outside of all is skipped by some readers
  }

  /** `entries`: [{icon, label, run, href?, file?}]; one with `href` is a link to something to save. */
  open(button, entries) {
    this.element.replaceChildren(...entries.map((entry) => this.#entry(entry)));
    openBeside(this.element, button);
    this.element.querySelector("[role=menuitem]")?.focus();
  }

  #entry({ icon: symbol, label, run, href }) {
    const close = () => this.element.hidePopover();
    if (href) {
      return h(
        "a",
        {
          role: "menuitem",
          href,
          download: "",
          onclick: () => setTimeout(close),
        },
        icon(symbol),
        label,
      );
    }
    const choose = () => {
      close();
      run();
    };
    return h("button", { type: "button", role: "menuitem", onclick: choose }, icon(symbol), label);
  }
}
