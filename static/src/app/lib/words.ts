// Marks the words of a search inside a message, as the server's search looks at them: without case and accents, from the
// beginning of a word. The document is not changed.

const NAME = "search-hit";
const MOST_RANGES = 2_000;
const TERM = /(-)?"([^"]*)"|(\S+)/g;
const ACCENTS = /[\u0300-\u036f\u0591-\u05c7\u064b-\u0652]/g;
const BLOCK = "p, li, td, th, pre, h1, h2, h3, h4, h5, h6, blockquote, summary, figcaption, div, dt, dd";

/** What a query looks for: words and phrases; not what it leaves out, and not its OR. Pure. */
export function wordsOf(query: string): string[] {
  const words: string[] = [];
  for (const [, minus, phrase, word] of query.matchAll(TERM)) {
    if (phrase !== undefined) {
      if (!minus) words.push(phrase);
    } else if (word !== "OR" && !word.startsWith("-")) words.push(word.replaceAll('"', ""));
  }
  return [...new Set(words.map((word) => word.trim()).filter((word) => /[\p{L}\p{N}]/u.test(word)))];
}

interface Folded {
  text: string;
  /** For each character of `text`, where it comes from. */
  from: number[];
}

/** A text without case and accents, and where each character stood. */
function folded(text: string): Folded {
  let result = "";
  const from: number[] = [];
  let at = 0;
  for (const character of text) {
    const plain = character.normalize("NFKD").replace(ACCENTS, "").toLowerCase();
    for (let index = 0; index < plain.length; index += 1) from.push(at);
    result += plain;
    at += character.length;
  }
  return { text: result, from };
}

/** Where the words begin and end in a text: offsets, in order, without overlaps. Pure. */
export function rangesOf(text: string, words: readonly string[]): [number, number][] {
  const patterns = words.map(patternOf).filter((pattern) => pattern !== "");
  if (!patterns.length) return [];
  const { text: plain, from } = folded(text);
  const found: [number, number][] = [];
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${patterns.sort((a, b) => b.length - a.length).join("|")})`, "gu");
  for (const match of plain.matchAll(pattern)) {
    const end = match.index + match[0].length;
    found.push([from[match.index], end < from.length ? from[end] : text.length]);
    if (found.length >= MOST_RANGES) break;
  }
  return found;
}

const SINGLE = /[\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f]/; // scripts that are searched character by character

/** A word with what its script lets follow; the words of a phrase stand next to each other. */
function patternOf(word: string): string {
  const parts = folded(word).text.match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
  const pattern = parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("[^\\p{L}\\p{N}]+");
  const isSingle = SINGLE.test(word);
  if (!pattern) return "";
  return isSingle ? `${pattern}` : `${pattern}[\\p{L}\\p{N}\\p{M}]*`;
}

/**
 * Mark these words in an element. Returns whether any is marked: where the browser cannot, or the words are only found by
 * their stems, the caller marks the whole message. A new call replaces the marks of the last one.
 */
export function highlightWords(element: Element, words: readonly string[]): boolean {
  clearHighlight();
  if (typeof Highlight === "undefined" || !CSS.highlights) return false;
  const { text, nodes } = textOf(element);
  const highlight = new Highlight();
  for (const [start, end] of rangesOf(text, words)) {
    const range = document.createRange();
    const [first, last] = [placeOf(nodes, start, false), placeOf(nodes, end, true)];
    if (!first || !last) continue;
    range.setStart(first.node, first.offset);
    range.setEnd(last.node, last.offset);
    highlight.add(range);
  }
  if (highlight.size === 0) return false;
  CSS.highlights.set(NAME, highlight);
  return true;
}

/** Take the marks away. */
export function clearHighlight(): void {
  if (typeof CSS !== "undefined") CSS.highlights?.delete(NAME);
}

/** The first marked place in the document, for scrolling to it. */
export function firstHighlight(): Range | null {
  const found = CSS.highlights?.get(NAME)?.values().next().value;
  return found instanceof Range ? found : null;
}

interface PlacedNode {
  node: Text;
  start: number;
}

/** All text of an element, and where each node of it begins. Blocks are kept apart. */
function textOf(element: Element): { text: string; nodes: PlacedNode[] } {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const nodes: PlacedNode[] = [];
  let text = "";
  let block: Element | null = null;
  for (let node = walker.nextNode() as Text | null; node; node = walker.nextNode() as Text | null) {
    if (node.parentElement?.closest("button, .visually-hidden")) continue; // names of buttons are no words of the message
    const own = node.parentElement?.closest(BLOCK) ?? null;
    if (block && own !== block) text += "\n";
    block = own;
    nodes.push({ node, start: text.length });
    text += node.data;
  }
  return { text, nodes };
}

function placeOf(nodes: PlacedNode[], at: number, isEnd: boolean): { node: Text; offset: number } | null {
  const index = nodes.findLastIndex(({ start }) => (isEnd ? start < at : start <= at));
  if (index < 0) return null;
  const { node, start } = nodes[index];
  return { node, offset: Math.min(at - start, node.length) };
}
