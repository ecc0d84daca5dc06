// What the next model call will contain: how much, of what, and each piece in full. Asked of the server, never guessed here.

import { several } from "./counts.js";
import {
  count,
  fullness,
  kindOf,
  leftOut,
  percent,
  piecesOf,
  policyText,
  usageOf,
} from "../app/store/context_facts.ts";
import { h, iconButton } from "./dom.js";
import { money } from "../app/lib/format.ts";
import { OpenFolds, PanelView } from "./panel_view.js";

export class ContextView extends PanelView {
  #abort = null;
  #folds = new OpenFolds();

  constructor(element, api) {
    super(element, api, "context");
    this.live = h("p", { class: "visually-hidden", role: "status" });
    element.append(this.live);
  }

  follow(on, again) {
    for (const name of ["spoken-end", "summaries", "reconnected", "switched"]) on(name, again);
    on("messages", () => this.conversation.leafId !== this.readLeafId && again()); // another branch
  }

  begin() {
    this.say(
      this.shownId ? "Asking what the model will read" : "Nothing yet: a conversation begins with its first message.",
    );
    if (this.shownId) this.read();
  }

  hide() {
    super.hide();
    this.#abort?.abort();
  }

  async read({ isAsked = false } = {}) {
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    const { id } = this.conversation.instance;
    this.readLeafId = this.conversation.leafId;
    try {
      const [context, usage] = await Promise.all([this.api.context(id, abort), this.api.usage(id).catch(() => null)]);
      if (!abort.signal.aborted) this.#draw(context, usage);
      if (isAsked && !abort.signal.aborted) this.live.textContent = fullness(context).text;
    } catch (error) {
      if (error.name !== "AbortError" && !abort.signal.aborted) this.fail(error, () => this.read({ isAsked: true }));
    }
  }

  #draw(context, usage) {
    const hadFocus = this.body.contains(document.activeElement)
      ? document.activeElement.getAttribute("data-keep")
      : null;
    const full = fullness(context);
    this.#folds.noteAll(this.body);
    this.body.replaceChildren(
      h(
        "div",
        { class: "panel-line" },
        h("h2", { text: "The next call" }),
        iconButton("again", "Read it again", () => this.read({ isAsked: true }), { "data-keep": "again" }),
      ),
      h("p", { class: full.isTight ? "context-sum is-tight" : "context-sum", text: full.text }),
      bar(context),
      h("p", { class: "muted", text: noteOf(context) }),
      this.#fold("system", "System prompt", context.system.tokens, () => systemNodes(context)),
      this.#fold("tools", "Tools", piecesOf(context)[1].tokens, () => toolNodes(context.tools), context.tools.length),
      ...(context.summaries.length
        ? [this.#fold("summary", "Summary", piecesOf(context)[2].tokens, () => summaryNodes(context.summaries))]
        : []),
      this.#fold("messages", "Messages", context.tail.tokens, () => tailNodes(context), context.tail.message_count),
      ...spentNodes(usage),
      h("p", {
        class: "muted context-how",
        text:
          "Put together by the code that makes real calls. Tokens are estimates. A message that you send comes on top, and the agent’s own code may still change a call when it begins.",
      }),
    );
    if (hadFocus) this.body.querySelector(`[data-keep="${hadFocus}"]`)?.focus({ preventScroll: true });
  }

  #fold(key, label, tokens, build, number = null) {
    const summary = [
      h("span", { class: `swatch is-${key}`, "aria-hidden": "true" }),
      h("span", { class: "context-label", text: number === null ? label : `${label} (${count(number)})` }),
      h(
        "span",
        { class: "context-tokens", text: count(tokens) },
        h("span", { class: "visually-hidden", text: " tokens" }),
      ),
    ];
    return this.#folds.make(key, summary, h("div", { class: "context-body" }), (body) => body.append(...build()));
  }
}

function bar(context) {
  const pieces = piecesOf(context).filter((piece) => piece.tokens > 0);
  const whole = Math.max(context.context_tokens, context.total_tokens, 1);
  const said = pieces.map((piece) => `${piece.label} ${percent(piece.tokens / whole)}`).join(", ");
  const element = h("div", {
    class: "context-bar",
    role: "img",
    "aria-label": `${said || "Nothing"} of ${context.context_tokens ? "what the model can read" : "this call"}`,
  });
  for (const piece of pieces) {
    const part = h("span", { class: `is-${piece.key}` });
    part.style.flexGrow = String(piece.tokens);
    element.append(part);
  }
  const free = h("span", { class: "is-free" });
  free.style.flexGrow = String(Math.max(0, whole - context.total_tokens));
  element.append(free);
  return element;
}

function noteOf(context) {
  const room = context.usable_tokens
    ? `Beyond ${several(context.usable_tokens, "token")} older messages are ${
      context.is_automatic ? "summarised by themselves" : "not summarised by themselves: that is switched off"
    }. `
    : "";
  return `${room}Model: ${context.model}.`;
}

function systemNodes({ system, blocks, loaded }) {
  const nodes = blocks.map((block) =>
    h(
      "div",
      { class: "context-block" },
      h("h3", { text: block.label }),
      h("p", { class: "muted", text: [kindOf(block), usageOf(block)].join(" · ") }),
      block.description ? h("p", { class: "muted", text: block.description }) : null,
    )
  );
  if (loaded.length) nodes.push(h("p", { class: "muted", text: `Loaded documents: ${loaded.join(", ")}` }));
  if (system.is_kept) {
    nodes.push(
      h("p", {
        class: "muted",
        text:
          "Kept as it was first made, so that the provider’s cache counts. What the model has written to a block since shows after the next summary or refresh.",
      }),
    );
  }
  nodes.push(
    system.text
      ? h("pre", { class: "value", tabindex: "0", dir: "auto", text: system.text })
      : h("p", { class: "muted", text: "There is none." }),
  );
  return nodes;
}

function toolNodes(tools) {
  if (!tools.length) return [h("p", { class: "muted", text: "The agent has no tools." })];
  const row = (tool) =>
    h(
      "li",
      {},
      h(
        "p",
        { class: "context-tool" },
        h("code", { text: tool.name }),
        h("span", { class: "muted", text: several(tool.tokens, "token") }),
      ),
      h("p", { class: "muted", text: tool.description }),
    );
  return [h("ul", { class: "context-list" }, tools.map(row))];
}

function summaryNodes(summaries) {
  return summaries.map((summary) =>
    h(
      "div",
      { class: "context-block" },
      h("p", { class: "muted", text: `In the place of ${several(summary.message_count, "message")}.` }),
      h("pre", { class: "value", tabindex: "0", dir: "auto", text: summary.text }),
    )
  );
}

function tailNodes(context) {
  const { tail } = context;
  const nodes = [];
  if (!tail.message_count) nodes.push(h("p", { class: "muted", text: "None." }));
  else {nodes.push(
      h("p", {
        class: "muted",
        text: tail.message_count === 1
          ? "One message:"
          : `${several(tail.message_count, "message")}, from this one on:`,
      }),
      h("blockquote", { dir: "auto", text: tail.first_text || "(no text)" }),
    );}
  const rest = leftOut(tail);
  if (rest) nodes.push(h("p", { class: "muted", text: rest }));
  if (tail.queued_count) {
    nodes.push(
      h("p", {
        class: "muted",
        text: `${several(tail.queued_count, "message")} still waiting ${
          tail.queued_count === 1 ? "is" : "are"
        } not counted.`,
      }),
    );
  }
  if (policyText(context)) nodes.push(h("p", { class: "muted", text: policyText(context) }));
  return nodes;
}

function spentNodes(usage) {
  if (!usage) return [];
  const { total, sub_agents: below } = usage;
  if (!total.input_tokens && !total.output_tokens) return [];
  const facts = [
    `${several(total.input_tokens, "token")} read, ${count(total.output_tokens)} written`,
    Number(total.cost) > 0 && money(total.cost),
  ];
  const nodes = [h("h2", { text: "So far" }), h("p", { text: facts.filter(Boolean).join(" · ") })];
  if (below.session_count) nodes.push(h("p", { class: "muted", text: "Sub-agents included." }));
  return nodes;
}
