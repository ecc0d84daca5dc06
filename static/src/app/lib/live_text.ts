// Text that grows. Finished blocks are frozen: their nodes are never touched again. Only the last block is parsed anew,
// and only as often as the page can bear.

import { ANSWER, Due } from "./busy.ts";
import type { Source } from "./citations.ts";
import { languageIn } from "./code.ts";
import { dressLater } from "./dress.ts";
import { hasNotes } from "./footnotes.ts";
import { type Block, blocksOf, type Env, languageOf, renderMarkdown } from "./markdown.ts";
import { morphList } from "./morph.ts";

const SHORTEST_PAUSE = 50;
const SHARE = 6; // rendering takes a seventh of the time at most
const COLOUR_WHILE_GROWING = 6_000;
const NONE: readonly Source[] = [];

export class LiveText {
  readonly element: HTMLElement;
  #onPaint: (change: () => void) => void;
  #shown = "";
  #wanted = "";
  #sources = NONE;
  #sourcesKey = "[]";
  #frozenAt = 0; // offset in the text up to which blocks are final
  #tail: Node[] = [];
  #env: Env = {};
  readonly #due = new Due(ANSWER);
  #pause = SHORTEST_PAUSE;
  #lastPaint = 0;
  #isFinal = false;

  /** `onPaint` is called around each change with a function that makes it: the list keeps its scroll there. */
  constructor(element: HTMLElement, onPaint: (change: () => void) => void = (change) => change()) {
    this.element = element;
    this.#onPaint = onPaint;
  }

  /**
   * Show this text. While it is live it is painted at intervals; otherwise at once and for good. `sources`: what its citations
   * may name, as `citationsOf` numbers them.
   */
  update(text: string, isLive: boolean, sources: readonly Source[] = NONE): void {
    const isNews = this.#takeSources(sources);
    if (text === this.#wanted && this.#isFinal === !isLive && !isNews) return;
    this.#wanted = text;
    this.#isFinal = !isLive;
    if (!isLive) return this.#finish();
    if (this.#due.isSet) return;
    const wait = Math.max(0, this.#lastPaint + this.#pause - performance.now());
    this.#due.set(() => this.#paint(), wait);
  }

  /** Nothing is painted any more. */
  dispose(): void {
    this.#due.clear();
  }

  /** Whether they are others than before. Then all of the text is rendered again. */
  #takeSources(sources: readonly Source[]): boolean {
    if (sources === this.#sources) return false;
    const key = JSON.stringify(sources);
    this.#sources = sources;
    if (key === this.#sourcesKey) return false;
    this.#sourcesKey = key;
    this.#again();
    return true;
  }

  #paint(): void {
    if (this.#isFinal || this.#shown === this.#wanted) return;
    const began = performance.now();
    this.#onPaint(() => this.#grow());
    const took = performance.now() - began;
    this.#lastPaint = performance.now();
    this.#pause = Math.max(SHORTEST_PAUSE, took * SHARE);
  }

  #grow(): void {
    if (!this.#wanted.startsWith(this.#shown)) this.#again();
    const rest = this.#wanted.slice(this.#frozenAt);
    const blocks = blocksOf(rest, this.#env);
    const last = blocks.at(-1);
    this.#shown = this.#wanted;
    if (!last) return this.#replaceTail([]);
    if (blocks.length > 1) this.#freeze(blocks.slice(0, -1), offsetOfLine(rest, last.line));
    if (!this.#growCode(last)) this.#replaceTail(last.nodes());
  }

  #freeze(blocks: Block[], offset: number): void {
    const nodes = blocks.flatMap((block) => block.nodes());
    const own = this.#tail;
    this.#tail = own.slice(nodes.length); // after a new beginning these are the following blocks
    morphList(this.element, own.slice(0, nodes.length), nodes, this.#tail[0] ?? null);
    this.#frozenAt += offset;
  }

  #replaceTail(nodes: Element[]): void {
    this.#tail = morphList(this.element, this.#tail, nodes);
    dressLater(this.element);
  }

  /** Long code grows by its text alone; it is coloured when it is complete. */
  #growCode(block: Block): boolean {
    const { token } = block;
    if (token?.type !== "fence" || token.content.length < COLOUR_WHILE_GROWING) return false;
    const [figure] = this.#tail;
    if (this.#tail.length !== 1 || !(figure instanceof Element) || !figure.matches("figure.code")) return false;
    const code = figure.querySelector("code");
    if (!code || languageIn(code) !== languageOf(token)) return false;
    const text = code.textContent ?? "";
    if (token.content.startsWith(text)) code.append(token.content.slice(text.length));
    else code.textContent = token.content;
    return true;
  }

  #finish(): void {
    this.#due.clear();
    this.#onPaint(() => {
      const wasLive = this.#shown !== "" && this.#wanted.startsWith(this.#shown);
      if (wasLive) {
        this.#grow();
        const rest = blocksOf(this.#wanted.slice(this.#frozenAt), this.#env);
        if (!changesEarlier(this.#env)) return this.#replaceTail(rest.flatMap((block) => block.nodes()));
      }
      this.#again();
      this.#replaceTail(renderMarkdown(this.#wanted, this.#sources));
      this.#shown = this.#wanted;
    });
  }

  /** Parse from the beginning: what stands there stays until it is found to be different. */
  #again(): void {
    this.#tail = [...this.element.children];
    this.#frozenAt = 0;
    this.#shown = "";
    this.#env = { sources: this.#sources };
  }
}

/** Link references and footnotes give a meaning to blocks that stand before them. */
const changesEarlier = (env: Env): boolean => Object.keys(env.references ?? {}).length > 0 || hasNotes(env);

function offsetOfLine(text: string, line: number): number {
  let offset = 0;
  for (; line > 0; line -= 1) offset = text.indexOf("\n", offset) + 1;
  return offset;
}
