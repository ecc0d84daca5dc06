// One message on the page: its parts, and under it what one can do with it.

import { h, icon, iconButton, setChildren } from "./dom.js";
import { count, duration, fullTime, timeLabel } from "./format.js";
import { isTool } from "./fold.js";
import { FileView, PlainTextView, ReasoningView, SourcesView, TextView } from "./part_views.js";
import { ToolView } from "./tool_view.js";

const isSource = (part) => part.type === "source-url" || part.type === "source-document";

function viewFor(part, role, context) {
  if (part.type === "text") return role === "assistant" ? new TextView(context) : new PlainTextView();
  if (part.type === "reasoning") return new ReasoningView(context);
  if (part.type === "file") return new FileView(context);
  if (isTool(part)) return new ToolView(context);
  return null; // steps, sources (listed together) and data for other clients
}

/** All text of a message, for copying and editing. */
export const textOf = (message) =>
  message.parts
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n\n");

export class MessageView {
  #views = new Map();

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
    const wanted = [];
    message.parts.forEach((part, index) => {
      const key = `${index} ${part.toolCallId ?? part.type}`;
      let view = this.#views.get(key);
      if (view === undefined) this.#views.set(key, (view = viewFor(part, this.role, this.context)));
      if (!view) return;
      view.key_ = key;
      view.update(part, message.isLive === true);
      wanted.push(view);
    });
    const sources = message.parts.filter(isSource);
    if (sources.length) {
      this.sources ??= new SourcesView();
      this.sources.update(sources);
      wanted.push(this.sources);
    }
    this.#dropOthers(wanted);
    setChildren(this.body, wanted.map((view) => view.element));
  }

  #dropOthers(wanted) {
    const kept = new Set(wanted.map((view) => view.key_));
    for (const [key, view] of this.#views) {
      if (!view || kept.has(key)) continue;
      view.dispose?.();
      this.#views.delete(key);
    }
  }

  #updateFoot(message, extra) {
    const key = message.isLive && !extra.note ? "live" : JSON.stringify([message.isLive, message.siblings, message.turn, extra, message.createdAt, textOf(message) !== ""]);
    if (key === this.footKey) return;
    this.footKey = key;
    this.foot.replaceChildren(...this.#footNodes(message, extra));
  }

  #footNodes(message, extra) {
    if (extra.note) return this.#pendingNodes(extra);
    if (message.isLive) return [];
    const act = (name) => () => this.context.act(name, this.message);
    const nodes = [siblingSwitch(message, this.context)];
    if (textOf(message)) nodes.push(iconButton("copy", "Copy this message", act("copy")));
    if (message.role === "assistant") nodes.push(iconButton("again", "Answer again", act("regenerate")));
    if (message.role === "user") nodes.push(iconButton("edit", "Edit this message", act("edit")));
    nodes.push(...metaNodes(message));
    return nodes.filter(Boolean);
  }

  #pendingNodes({ note, state }) {
    const act = (name) => () => this.context.act(name, this.message);
    const nodes = [h("span", { class: "muted", text: note })];
    if (state === "refused" || state === "waiting") {
      nodes.push(h("button", { type: "button", class: "quiet", text: "Try again", onclick: act("resend") }));
      nodes.push(h("button", { type: "button", class: "quiet", text: "Take back", onclick: act("takeBack") }));
    }
    if (state === "queued") nodes.push(h("button", { type: "button", class: "quiet", text: "Do not send", onclick: act("unqueue") }));
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

function metaNodes(message) {
  const turn = message.turn;
  const nodes = [];
  if (message.role === "assistant" && turn) {
    const facts = [];
    if (turn.status === "cancelled" || turn.status === "aborted") facts.push("stopped");
    if (turn.model) facts.push(turn.model);
    const tokens = (turn.input_tokens ?? 0) + (turn.output_tokens ?? 0);
    if (tokens) facts.push(`${count(tokens)} tokens`);
    if (turn.duration_ms) facts.push(duration(turn.duration_ms));
    if (facts.length) nodes.push(h("span", { class: "meta", title: tokenTitle(turn), text: facts.join(" · ") }));
  }
  if (message.createdAt) {
    nodes.push(h("time", { class: "meta when", datetime: message.createdAt, title: fullTime(message.createdAt), text: timeLabel(message.createdAt) }));
  }
  return nodes;
}

const tokenTitle = (turn) => `${count(turn.input_tokens ?? 0)} tokens read, ${count(turn.output_tokens ?? 0)} tokens written`;

/** Say for a moment that something was copied. */
export function flash(button, text) {
  if (!button) return;
  const old = button.dataset.flash ? null : [...button.childNodes];
  if (!old) return;
  button.dataset.flash = "1";
  const isIcon = button.classList.contains("icon-button");
  button.replaceChildren(isIcon ? icon("check") : text);
  if (isIcon) button.setAttribute("data-note", text);
  setTimeout(() => {
    delete button.dataset.flash;
    button.removeAttribute("data-note");
    button.replaceChildren(...old);
  }, 1400);
}

