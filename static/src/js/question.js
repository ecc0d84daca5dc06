// What a call waits for, and the buttons that answer it: a person's approval, or another client's result.

import { h, setText } from "./dom.js";
import { toolName } from "../app/store/fold.ts";
import { asksApproval } from "../app/store/runs.ts";

/** Under a call, while it waits: exactly what would run, and the buttons. */
export class QuestionView {
  constructor(context) {
    this.context = context;
    this.text = h("p", { class: "question-text" });
    this.values = h("div", { class: "question-values" });
    this.allow = h("button", {
      type: "button",
      class: "button is-primary",
      text: "Allow",
      onclick: () => this.#answer("approve"),
    });
    this.deny = h("button", {
      type: "button",
      class: "button",
      onclick: () => this.#answer(asksApproval(this.part) ? "deny" : "skip"),
    });
    this.element = h(
      "div",
      { class: "question", role: "group" },
      this.text,
      this.values,
      h("p", { class: "question-buttons" }, this.allow, this.deny),
    );
  }

  update(part, message, valueNode) {
    this.part = part;
    this.message = message;
    const isQuestion = asksApproval(part);
    const name = toolName(part);
    setText(
      this.text,
      isQuestion
        ? `May ${name} run with these arguments?`
        : "This call is answered by another app or window that shows this conversation.",
    );
    setText(this.deny, isQuestion ? "Decline" : "Skip it");
    this.element.setAttribute("aria-label", isQuestion ? `Approve ${name}` : `Waiting: ${name}`);
    this.allow.hidden = !isQuestion;
    this.#show(isQuestion ? part.input : undefined, valueNode);
    for (const button of [this.allow, this.deny]) button.hidden ||= this.context.isReadOnly === true;
  }

  #show(input, valueNode) {
    const key = JSON.stringify(input) ?? "";
    if (key === this.key) return;
    this.key = key;
    const isEmpty = input === undefined || (typeof input === "object" && input !== null && !Object.keys(input).length);
    this.values.replaceChildren(...(isEmpty ? [] : [valueNode(input)]));
  }

  async #answer(verb) {
    this.#enable(false);
    const isDone = await this.context.act(verb, this.message, this.part);
    if (!isDone) this.#enable(true); // it was not stored: try again
  }

  #enable(isOn) {
    this.allow.disabled = this.deny.disabled = !isOn;
  }
}
