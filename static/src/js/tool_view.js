// A tool call: one line that opens. Name, what it was asked, how it stands, how long it took; inside, arguments and result.

import { h, setText } from "./dom.js";
import { duration } from "./format.js";
import { isSettled, toolName } from "../app/store/fold.ts";
import { fold } from "./part_views.js";
import { highlighted } from "./highlight.js";
import { markupToNodes } from "./markdown.js";
import { QuestionView } from "./question.js";

const STATES = {
  "input-streaming": "Writing the call",
  "input-available": "Running",
  "approval-requested": "Waiting for approval",
  "approval-responded": "Allowed",
  "output-available": "Done",
  "output-error": "Failed",
  "output-denied": "Declined",
};
const LONGEST_SHOWN = 40_000;

export class ToolView {
  constructor(context) {
    this.context = context;
    this.fold = fold("tool", "tool", () => this.#fill());
    this.element = h("div", { class: "tool-call" }, this.fold.details);
    this.hint = h("span", { class: "fold-hint" });
    this.fold.label.after(this.hint);
  }

  update(part, isLive, message) {
    this.part = part;
    const state = this.#state(part, isLive, message);
    const ms = toolTime(part, message.toolMs);
    setText(this.fold.label, part.title || toolName(part) || "Tool");
    setText(this.hint, hintOf(part));
    setText(this.fold.note, ms ? `${state}, ${duration(ms)}` : state);
    const { details } = this.fold;
    details.dataset.state = part.preliminary ? "running" : part.state;
    details.classList.toggle("is-live", isLive && !isSettled(part));
    if (this.fold.isBuilt()) this.#fill();
    this.#ask(part, isLive, message);
  }

  #ask(part, isLive, message) {
    const isAsked = part.state === "approval-requested" || this.#isElsewhere(part, isLive, message);
    if (!isAsked) {
      this.question?.element.remove();
      this.question = null;
      return;
    }
    this.question ??= new QuestionView(this.context);
    this.question.update(part, message, valueNode);
    if (this.question.element.parentElement !== this.element) this.element.append(this.question.element); // moved, it would lose the focus
  }

  /** A call that the server does not run: it waits in the last answer. */
  #isElsewhere(part, isLive, message) {
    return part.state === "input-available" && !isLive && this.context.isLast?.(message) === true;
  }

  #state(part, isLive, message) {
    if (part.preliminary) return "Running";
    if (this.#isElsewhere(part, isLive, message)) return "Waiting for another app";
    if (!isLive && (part.state === "input-streaming" || part.state === "input-available")) return "No result";
    return STATES[part.state] ?? part.state ?? "";
  }

  #fill() {
    const part = this.part;
    const key = JSON.stringify([part.state, part.input, part.output, part.errorText, part.rawInput]);
    if (key === this.key) return;
    this.key = key;
    const sections = [];
    const input = part.input ?? (part.rawInput || undefined);
    if (input !== undefined) sections.push(section("Arguments", valueNode(input)));
    if (part.errorText) {
      sections.push(section("Error", h("pre", { class: "value is-error", tabindex: "0", text: part.errorText })));
    }
    if (part.output !== undefined) {
      sections.push(section(part.preliminary ? "Result so far" : "Result", valueNode(part.output)));
    }
    if (!sections.length) sections.push(h("p", { class: "muted", text: "Nothing to show yet." }));
    this.fold.body.replaceChildren(...sections);
  }
}

function section(title, node) {
  return h("section", { class: "tool-section" }, h("h3", { text: title }), node);
}

/** What the server measured; until the page has been read again, what this tab saw. */
function toolTime(part, times) {
  if (times?.[part.toolCallId] !== undefined) return times[part.toolCallId];
  return part.startedAt && part.endedAt && isSettled(part) ? part.endedAt - part.startedAt : 0;
}

/** The first short value of the arguments: enough to tell one call from the next while it is closed. */
function hintOf(part) {
  const input = part.input;
  if (!input || typeof input !== "object") return "";
  const value = Object.values(input).find((item) => typeof item === "string" || typeof item === "number");
  const text = value === undefined ? "" : String(value).replace(/\s+/g, " ").trim();
  const file = /^\S*\/([^/\s]+\/[^/\s]+)$/.exec(text);
  if (file && text.length > 30) return `…/${file[1]}`; // of a path its end tells more
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

function valueNode(value) {
  const isText = typeof value === "string";
  const text = isText ? value : JSON.stringify(value, null, 2) ?? "null";
  const cut = text.length > LONGEST_SHOWN
    ? `${text.slice(0, LONGEST_SHOWN)}\n… ${text.length - LONGEST_SHOWN} more characters`
    : text;
  const pre = h("pre", { class: "value", tabindex: "0", dir: "auto" });
  const markup = isText ? null : highlighted(cut, "json");
  if (markup === null) pre.textContent = cut;
  else pre.append(markupToNodes(markup));
  return pre;
}
