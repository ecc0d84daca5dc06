// Above the message field, while a slash is typed: what there is to command. Enter or a press takes it.

import { commandOf, offered } from "../app/store/commands.ts";
import { h } from "./dom.js";

export class CommandRow {
  #key = "";

  /** `take(command)` puts it into the field. */
  constructor(element, take) {
    this.element = element;
    this.take = take;
  }

  show(text) {
    const commands = offered(text);
    const key = commands.map((command) => command.name).join();
    if (key === this.#key) return;
    this.#key = key;
    this.element.replaceChildren(...commands.map((command) => this.#button(command)));
  }

  /** Take the only command that what is typed begins; false when it is whole already, or there is none. */
  complete(text) {
    const [first] = offered(text);
    if (!first || commandOf(text)) return false;
    this.take(first);
    return true;
  }

  #button(command) {
    return h(
      "button",
      { type: "button", class: "command", onclick: () => this.take(command) },
      h("code", { text: command.usage }),
      h("span", { text: command.hint }),
    );
  }
}
