// What is remembered: of the person, of the conversation, of the agent. Everything can be seen; what is kept here can be changed.

import { BlockCard } from "./block_card.js";
import { h } from "./dom.js";
import { PanelView } from "./panel_view.js";
import { grouped, Remembered } from "../app/store/remembered.ts";

export class MemoryView extends PanelView {
  #turn = 0; // answers to older questions do not count
  #cards = new Map();

  constructor(element, api) {
    super(element, api, "memory");
  }

  follow(on) {
    for (const name of ["spoken-end", "reconnected"]) on(name, () => this.read());
    on("switched", () => this.begin()); // another history remembers other things
  }

  begin() {
    this.#cards.clear();
    this.say("Reading what is remembered");
    this.read();
  }

  hide() {
    super.hide();
    this.#turn += 1;
  }

  async read() {
    const turn = ++this.#turn;
    try {
      const [sessionId, memory] = await Promise.all([this.#session(), this.api.request("GET", "/memory")]);
      const blocks = sessionId
        ? (await this.api.request("GET", `/sessions/${encodeURIComponent(sessionId)}/context`)).blocks
        : [];
      if (turn === this.#turn) this.#draw(grouped(blocks, memory), sessionId);
    } catch (error) {
      if (turn !== this.#turn) return;
      this.fail(error);
      this.#cards.clear();
    }
  }

  async #session() {
    return this.shownId ? ((await this.api.instance(this.shownId)).session_id ?? "") : "";
  }

  #draw(groups, sessionId) {
    const kept = this.body.contains(document.activeElement) ? document.activeElement : null;
    const cards = new Map();
    const sections = groups
      .filter((group) => group.blocks.length || group.key === "user")
      .map((group) => {
        const shown = group.blocks.map((block) => this.#card(cards, block, sessionId));
        const body = shown.length
          ? shown.map((card) => card.element)
          : [h("p", { class: "muted", text: "Nothing is remembered about you." })];
        return h(
          "section",
          { class: "memory-group", "aria-label": group.title },
          h("h2", { text: group.title }),
          shown.length ? h("p", { class: "muted", text: group.hint }) : null,
          ...body,
        );
      });
    this.#cards = cards;
    this.body.replaceChildren(...sections);
    if (kept) this.#focus(kept); // moving an element takes its focus
  }

  #focus(kept) {
    const name = CSS.escape(kept.getAttribute("aria-label") ?? "");
    (kept.isConnected ? kept : this.body.querySelector(`[aria-label="${name}"]`))?.focus({ preventScroll: true });
  }

  #card(cards, block, sessionId) {
    const isOwn = block.of === "user";
    const key = `${block.of} ${block.label}`;
    const at = { label: block.label, sessionId: block.isElsewhere ? "" : sessionId, isOwn };
    const card = this.#cards.get(key) ?? new BlockCard(new Remembered(this.api, at), () => this.read());
    card.update(block);
    cards.set(key, card);
    return card;
  }
}
