// Where formulas stand in Markdown: `$…$`, `$$…$$`, `\(…\)`, `\[…\]`. They are found before anything in them is taken for an
// emphasis or an escape. Money stays money, and code stays code.

import type { MarkdownIt } from "./markdown_it.ts";
import type { StateBlock, StateInline } from "./markdown_it.ts";

const LONGEST = 5_000;
const BACKSLASH = 0x5c;
const DOLLAR = 0x24;

/** Teach the parser formulas: tokens `math_inline`, `math_display` (inside a paragraph) and `math_block`; content is TeX. */
export function mathSyntax(md: MarkdownIt): void {
  md.inline.ruler.before("escape", "math", inlineMath);
  md.block.ruler.before("fence", "math", blockMath, { alt: ["paragraph", "reference", "blockquote", "list"] });
}

// --- inside a line ----------------------------------------------------------------------------------------------------

interface Found {
  tex: string;
  end: number;
  isDisplay: boolean;
}

function inlineMath(state: StateInline, silent: boolean): boolean {
  const found = formulaAt(state.src, state.pos, state.posMax);
  if (!found) return false;
  if (!silent) {
    const token = state.push(found.isDisplay ? "math_display" : "math_inline", "", 0);
    token.content = found.tex;
  }
  state.pos = found.end;
  return true;
}

function formulaAt(text: string, at: number, limit: number): Found | null {
  const [first, second] = [text.charCodeAt(at), text.charCodeAt(at + 1)];
  if (first === BACKSLASH && (second === 0x28 || second === 0x5b)) {
    const isDisplay = second === 0x5b;
    return between(text, at, limit, isDisplay ? "\\]" : "\\)", isDisplay);
  }
  if (first !== DOLLAR) return null;
  if (second === DOLLAR) return between(text, at, limit, "$$", true);
  return dollars(text, at, limit);
}

function between(text: string, at: number, limit: number, close: string, isDisplay: boolean): Found | null {
  const end = closeOf(text, at + 2, Math.min(limit, at + LONGEST), close);
  if (end < 0) return null;
  const tex = text.slice(at + 2, end);
  return tex.trim() === "" || tex.includes("`") ? null : { tex, end: end + 2, isDisplay };
}

/** Offset of the closing delimiter that is not escaped, -1 where there is none. */
function closeOf(text: string, from: number, limit: number, close: string): number {
  for (let at = from; at < limit; at += 1) {
    if (text.startsWith(close, at)) return at + close.length <= limit ? at : -1;
    if (text.charCodeAt(at) === BACKSLASH) at += 1;
  }
  return -1;
}

const WORDLIKE = /[\p{L}\p{N}_]/u;
const AMOUNT_AND_WORDS = /^\d[\d.,]*[kKmMbB]?[\s).,;:/–-]+\p{L}{2,}/u; // "$5 and 10$"

/** One dollar on each side: no space inside, no word outside, nothing that reads as an amount of money. */
function dollars(text: string, at: number, limit: number): Found | null {
  if (at > 0 && WORDLIKE.test(text[at - 1])) return null;
  if (/\s/.test(text[at + 1] ?? " ")) return null;
  const end = dollarAfter(text, at + 1, Math.min(limit, at + LONGEST));
  if (end < 0 || /\s/.test(text[end - 1]) || WORDLIKE.test(text[end + 1] ?? "") || text[end + 1] === "{") return null;
  const tex = text.slice(at + 1, end);
  if (tex.includes("`") || AMOUNT_AND_WORDS.test(tex)) return null;
  return { tex, end: end + 1, isDisplay: false };
}

function dollarAfter(text: string, from: number, limit: number): number {
  for (let at = from; at < limit; at += 1) {
    const code = text.charCodeAt(at);
    if (code === DOLLAR) return at;
    if (code === BACKSLASH) at += 1;
  }
  return -1;
}

// --- on lines of their own --------------------------------------------------------------------------------------------

/**
 * A formula that begins a line and ends one. A blank line before its end makes it text, so that where a block ends never
 * depends on what comes after the next one has begun. At the end of the text it may still be growing: it is a block already.
 */
function blockMath(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  if (state.sCount[startLine] - state.blkIndent >= 4) return false;
  const start = state.bMarks[startLine] + state.tShift[startLine];
  const open = state.src.slice(start, start + 2);
  if (open !== "$$" && open !== "\\[") return false;
  const close = open === "$$" ? "$$" : "\\]";
  const first = state.src.slice(start + 2, state.eMarks[startLine]);
  const lines: string[] = [];
  let line = startLine;
  for (; line < endLine; line += 1) {
    const text = line === startLine ? first : lineOf(state, line);
    if (text === null) return false;
    const end = closeOf(text, 0, text.length, close);
    if (end >= 0) {
      if (text.slice(end + 2).trim() !== "") return false; // goes on after its end: part of a line
      lines.push(text.slice(0, end));
      break;
    }
    lines.push(text);
  }
  const isOpen = line >= endLine;
  if (isOpen && (state.level > 0 || endLine < state.lineMax)) return false;
  const content = lines.join("\n");
  if (content.trim() === "" && !isOpen) return false;
  if (silent) return !isOpen; // what may still become text ends no paragraph
  push(state, startLine, Math.min(line + 1, endLine), isOpen ? open + content : content, isOpen);
  return true;
}

/** A line inside the present container; null where it is blank or the container has ended. */
function lineOf(state: StateBlock, line: number): string | null {
  if (state.isEmpty(line) || state.sCount[line] < state.blkIndent) return null;
  return state.src.slice(state.bMarks[line] + Math.min(state.tShift[line], state.blkIndent), state.eMarks[line]);
}

function push(state: StateBlock, from: number, to: number, content: string, isOpen: boolean): void {
  state.line = to;
  const token = state.push(isOpen ? "math_open" : "math_block", "", 0);
  token.content = content;
  token.map = [from, to];
  token.block = true;
}
