// One message on the page: its parts, and under it what one can do with it.

import { h, iconButton, renew, setChildren, setText } from "./dom.js";
import { fullTime, timeLabel, turnFacts, usageFacts } from "./format.js";
import { isLongText } from "./long_text.js";
import { isTool } from "../app/store/fold.ts";
import { FileView, PlainTextView, ReasoningView, SourcesView, TextView } from "./part_views.js";
import { textOf } from "../app/store/text_of.ts";
import { longRuns } from "../app/store/runs.ts";
import { ToolRunView } from "./tool_run.js";
import { ToolView } from "./tool_view.js";

const isSource = (part) => part.type === "source-url" || part.type === "source-document";

function viewFor(part, role, context) {
  if (part.type === "text") return role === "assistant" ? new TextView(context) : new PlainTextView();
  if (part.type === "reasoning") return new ReasoningView(context);
  if (part.type === "file") return new FileView(context);
  if (isTool(part)) return new ToolView(context);
  return null; // steps, sources (listed together) and data for other clients
}

const keyOf = (part, index) => `${index} ${part.toolCallId ?? part.type}`;

export class MessageView {
  #views = new Map();
  #runs = new Map();
  sources = null;

  constructor(message, context) {
    this.context = context;
    this.role = message.role;
    this.body = h("div", { class: "message-body" });
    this.foot = h("div", { class: "message-foot" });
    const who = message.role === "user" ? "You said" : message.role === "assistant" ? "Answer" : "System";
    this.element = h(
      "li",
      { class: `message is-${message.role}`, dataset: { id: message.id } },
      h("h2", { class: "visually-hidden", text: who }),
      this.body,
      this.foot,
    );
    this.update(message);
  }

  update(message, extra = {}) {
    this.message = message;
    this.element.classList.toggle("is-live", message.isLive === true);
    this.element.classList.toggle("is-pending", Boolean(extra.note));
    this.#updateParts(message);
    this.#updateFoot(message, extra);
  }

  #updateParts(message) {
    const views = new Map(); // by key, in order
    message.parts.forEach((part, index) => {
      const key = keyOf(part, index);
      let view = this.#views.get(key);
      if (view === undefined) view = viewFor(part, this.role, this.context);
      views.set(key, view);
      view?.update(part, message.isLive === true, message);
    });
    for (const [key, view] of this.#views) if (!views.has(key)) view?.dispose?.();
    this.#views = views;
    const elements = this.#gathered(message);
    const sources = message.parts.filter(isSource);
    if (sources.length) {
      this.sources ??= new SourcesView();
      this.sources.update(sources);
      elements.push(this.sources.element);
    }
    setChildren(this.body, elements);
  }

  /** Elements in order, those of a long run of tool calls inside one line. */
  #gathered(message) {
    const runs = longRuns(message.parts);
    const first = new Map(runs.map((run) => [keyOf(run.parts[0], run.first), run]));
    const inside = new Set(runs.flatMap((run) => run.parts));
    const elements = [];
    [...this.#views].forEach(([key, view], index) => {
      const run = first.get(key);
      if (run) elements.push(this.#runElement(key, run, message));
      if (view && !inside.has(message.parts[index])) elements.push(view.element);
    });
    return elements;
  }

  #runElement(key, run, message) {
    if (!this.#runs.has(key)) this.#runs.set(key, new ToolRunView());
    const view = this.#runs.get(key);
    const views = run.parts.map((part) => this.#views.get(keyOf(part, message.parts.indexOf(part))));
    view.update(run.parts, views, message.isLive === true);
    return view.element;
  }

  #updateFoot(message, extra) {
    const key = message.isLive && !extra.note ? "live" : JSON.stringify([
      message.isLive,
      message.siblings,
      message.turn,
      extra,
      message.createdAt,
      textOf(message) !== "",
    ]);
    if (key === this.footKey) return;
    this.footKey = key;
    renew(this.foot, this.#footNodes(message, extra));
  }

  #footNodes(message, extra) {
    if (extra.note) return this.#pendingNodes(extra);
    if (message.isLive) return [];
    const act = (name) => () => this.context.act(name, this.message);
    const nodes = [this.#longSwitch(message), siblingSwitch(message, this.context)];
    if (textOf(message)) nodes.push(iconButton("copy", "Copy this message", act("copy")));
    if (message.role === "assistant" && !this.context.isReadOnly) {
      nodes.push(iconButton("again", "Answer again", act("regenerate")));
    }
    if (message.role === "user" && !this.context.isReadOnly) {
      nodes.push(iconButton("edit", "Edit this message", act("edit")));
    }
    if (message.role === "assistant" && textOf(message) && !this.context.isReadOnly) {
      nodes.push(iconButton("edit", "Edit this answer", act("editAnswer")));
    }
    if (!this.context.isReadOnly) nodes.push(iconButton("fork", "Fork from here", act("fork")));
    nodes.push(...metaNodes(message, this.context));
    return nodes.filter(Boolean);
  }

  /** A pasted log is not in the way: its beginning is shown, the rest on demand. */
  #longSwitch(message) {
    if (message.role !== "user" || !isLongText(textOf(message))) return null;
    const button = h("button", {
      type: "button",
      class: "quiet",
      onclick: () => show(this.element.classList.contains("is-cut")),
    });
    const show = (isWhole) => {
      this.element.classList.toggle("is-cut", !isWhole);
      setText(button, isWhole ? "Show less" : "Show all");
      button.setAttribute("aria-expanded", String(isWhole));
    };
    show(false);
    return button;
  }

  #pendingNodes({ note, state }) {
    const act = (name) => () => this.context.act(name, this.message);
    const nodes = [h("span", { class: "muted", text: note })];
    if (state === "refused" || state === "waiting") {
      nodes.push(h("button", { type: "button", class: "quiet", text: "Try again", onclick: act("resend") }));
      nodes.push(h("button", { type: "button", class: "quiet", text: "Take back", onclick: act("takeBack") }));
    }
    if (state === "queued") {
      nodes.push(h("button", { type: "button", class: "quiet", text: "Do not send", onclick: act("unqueue") }));
    }
    return nodes;
  }

  dispose() {
    for (const view of this.#views.values()) view?.dispose?.();
    this.element.remove();
  }
}

function siblingSwitch(message, context) {
  const all = message.siblings ?? [];
  if (all.length < 2) return null;
  const at = all.indexOf(message.id);
  const go = (index) => () => context.act("sibling", message, all[index]);
  const label = h("span", { class: "sibling-count", text: `${at + 1} / ${all.length}` });
  return h(
    "span",
    { class: "siblings", role: "group", "aria-label": `Version ${at + 1} of ${all.length}` },
    iconButton("left", "Previous version", go(at - 1), { disabled: at <= 0 }),
    label,
    iconButton("right", "Next version", go(at + 1), { disabled: at >= all.length - 1 }),
  );
}

function metaNodes(message, context) {
  const nodes = [];
  if (message.role === "assistant" && message.turn) {
    const { short, long } = turnFacts(message.turn);
    const more = h("p", { class: "facts-more", hidden: true, text: long });
    const toggle = ({ currentTarget }) => {
      more.hidden = !more.hidden;
      currentTarget.setAttribute("aria-expanded", String(!more.hidden));
      if (!more.hidden) tellUsage(more, long, context);
    };
    if (short) {
      nodes.push(
        h("button", { type: "button", class: "meta facts", "aria-expanded": "false", onclick: toggle, text: short }),
        more,
      );
    }
  }
  if (message.createdAt) {
    nodes.push(
      h("time", {
        class: "meta when",
        datetime: message.createdAt,
        title: fullTime(message.createdAt),
        text: timeLabel(message.createdAt),
      }),
    );
  }
  return nodes;
}

/** The conversation's own figures behind those of the turn. They are requested when the panel is opened. */
async function tellUsage(element, long, context) {
  try {
    setText(element, `${long}. ${usageFacts(await context.act("usage"))}.`);
  } catch {
    setText(element, long); // the turn's own figures are there all the same
  }
}
