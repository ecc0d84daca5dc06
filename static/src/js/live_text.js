// Text that grows. Finished blocks are frozen: their nodes are never touched again. Only the last block is parsed anew,
// and only as often as the page can bear.

import { blocksOf, languageOf, renderMarkdown } from "./markdown.js";
import { morph } from "./dom.js";

const SHORTEST_PAUSE = 50;
const SHARE = 6; // rendering takes a seventh of the time at most
const COLOUR_WHILE_GROWING = 6_000;

export class LiveText {
  #shown = "";
  #wanted = "";
  #frozenAt = 0; // offset in the text up to which blocks are final
  #tail = [];
  #env = {};
  #timer = 0;
  #pause = SHORTEST_PAUSE;
  #lastPaint = 0;
  #isFinal = false;

  /** `onPaint` is called around each change with a function that makes it: the timeline keeps its scroll there. */
  constructor(element, onPaint = (change) => change()) {
    this.element = element;
    this.onPaint = onPaint;
  }

  /** Show this text. While it is live it is painted at intervals; otherwise at once and for good. */
  update(text, isLive) {
    if (text === this.#wanted && this.#isFinal === !isLive) return;
    this.#wanted = text;
    this.#isFinal = !isLive;
    if (!isLive) return this.#finish();
    if (this.#timer) return;
    const wait = Math.max(0, this.#lastPaint + this.#pause - performance.now());
    this.#timer = setTimeout(() => this.#paint(), wait);
  }

  dispose() {
    clearTimeout(this.#timer);
  }

  #paint() {
    this.#timer = 0;
    if (this.#isFinal || this.#shown === this.#wanted) return;
    const began = performance.now();
    this.onPaint(() => this.#grow());
    const took = performance.now() - began;
    this.#lastPaint = performance.now();
    this.#pause = Math.max(SHORTEST_PAUSE, took * SHARE);
  }

  #grow() {
    if (!this.#wanted.startsWith(this.#shown)) this.#reset();
    const rest = this.#wanted.slice(this.#frozenAt);
    const blocks = blocksOf(rest, this.#env);
    const last = blocks.at(-1);
    this.#shown = this.#wanted;
    if (!last) return;
    if (blocks.length > 1) this.#freeze(blocks.slice(0, -1), offsetOfLine(rest, last.line));
    if (!this.#growCode(last)) this.#replaceTail(last.nodes());
  }

  #freeze(blocks, offset) {
    const nodes = blocks.flatMap((block) => block.nodes());
    this.#replaceTail(nodes);
    this.#tail = [];
    this.#frozenAt += offset;
  }

  #replaceTail(nodes) {
    const kept = this.#tail.slice(0, nodes.length).map((old, index) => morph(old, nodes[index]));
    this.#tail.slice(nodes.length).forEach((old) => old.remove());
    this.element.append(...nodes.slice(kept.length));
    this.#tail = [...kept, ...nodes.slice(kept.length)];
  }

  /** Long code grows by its text alone; it is coloured when it is complete. */
  #growCode(block) {
    if (block.token?.type !== "fence" || block.token.content.length < COLOUR_WHILE_GROWING) return false;
    const figure = this.#tail.length === 1 && this.#tail[0].matches("figure.code") ? this.#tail[0] : null;
    if (!figure || figure.querySelector(".code-language").textContent !== (languageOf(block.token) || "text")) {
      return false;
    }
    const code = figure.querySelector("code");
    const text = code.textContent;
    if (block.token.content.startsWith(text)) code.append(block.token.content.slice(text.length));
    else code.textContent = block.token.content;
    return true;
  }

  #finish() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.onPaint(() => {
      const wasLive = this.#shown !== "" && this.#wanted.startsWith(this.#shown);
      const hasReferences = () => Object.keys(this.#env.references ?? {}).length > 0;
      if (wasLive) {
        this.#grow();
        const rest = blocksOf(this.#wanted.slice(this.#frozenAt), this.#env);
        if (!hasReferences()) return this.#replaceTail(rest.flatMap((block) => block.nodes()));
      }
      this.#reset();
      this.element.append(...renderMarkdown(this.#wanted));
      this.#shown = this.#wanted;
    });
  }

  #reset() {
    this.element.replaceChildren();
    this.#tail = [];
    this.#frozenAt = 0;
    this.#shown = "";
    this.#env = {};
  }
}

function offsetOfLine(text, line) {
  let offset = 0;
  for (; line > 0; line -= 1) offset = text.indexOf("\n", offset) + 1;
  return offset;
}
