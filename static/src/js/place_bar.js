// One line under the head that says where one is when that is not simply the conversation: in another version or
// history, in what is archived, in a fork.

import { h } from "./dom.js";

export class PlaceBar {
  #key = "";

  /** `on`: {base, goOn(), back(), restore(), openOrigin(origin)}. */
  constructor(element, on) {
    this.element = element;
    this.on = on;
  }

  draw(conversation) {
    const { place, instance, running } = conversation;
    const key = JSON.stringify([
      place?.isOther,
      place?.isForeign,
      instance.id,
      instance.isArchived,
      instance.isReadOnly,
      instance.origin,
      Boolean(running),
    ]);
    if (key === this.#key) return;
    this.#key = key;
    const hadFocus = this.element.contains(document.activeElement);
    const nodes = place?.isOther
      ? this.#other(place, instance)
      : instance.isArchived
      ? this.#archived()
      : instance.origin
      ? this.#origin(instance.origin)
      : null;
    this.element.hidden = !nodes;
    this.element.replaceChildren(...(nodes ?? []));
    this.element.classList.toggle("is-strong", Boolean(place?.isOther));
    if (hadFocus && !nodes) document.getElementById("scroller").focus({ preventScroll: true });
  }

  #other(place, instance) {
    const text = place.isForeign
      ? "You read another history of this conversation."
      : "You read another version of this conversation.";
    const goOn = place.isForeign ? "Switch to it" : "Go on from this one";
    return [
      h("span", { text }),
      instance.isReadOnly && place.isForeign
        ? null
        : h("button", { type: "button", class: "quiet", text: goOn, onclick: () => this.on.goOn() }),
      h("button", { type: "button", class: "quiet", text: "Back", onclick: () => this.on.back() }),
    ].filter(Boolean);
  }

  #archived() {
    return [
      h("span", { text: "This conversation is archived." }),
      " ",
      h("button", { type: "button", class: "quiet", text: "Restore", onclick: () => this.on.restore() }),
    ];
  }

  #origin(origin) {
    const open = (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      this.on.openOrigin(origin);
    };
    const href = `${this.on.base}c/${encodeURIComponent(origin.id)}?at=${encodeURIComponent(origin.messageId)}`;
    return [
      h("span", { text: "Forked from" }),
      " ",
      h("a", { href, dir: "auto", onclick: open, text: origin.title || "another conversation" }),
    ];
  }
}
