// Footnotes: `text[^1]` and, on a line of its own, `[^1]: note`. Numbers follow the order in which notes are first referred
// to. Nothing has an id: a note and what refers to it find each other inside their text, so no message clashes with another.

import type { MarkdownIt } from "./markdown_it.ts";
import type { StateBlock, StateInline, Token } from "./markdown_it.ts";
import { t } from "./i18n.ts";

/** What the parser remembers from one block to the next. */
export interface NotesEnv {
  notes?: { defined: Set<string>; numbers: Map<string, number>; referred: Set<string> };
}

const DEFINITION = /^\[\^([^\]\s]{1,80})\]:[ \t]*/;
const REFERENCE = /^\[\^([^\]\s]{1,80})\]/;

const notesOf = (env: NotesEnv) => env.notes ??= { defined: new Set(), numbers: new Map(), referred: new Set() };

function numberOf(env: NotesEnv, label: string): number {
  const { numbers } = notesOf(env);
  if (!numbers.has(label)) numbers.set(label, numbers.size + 1);
  return numbers.get(label)!;
}

/** Whether a text has footnotes: then a later block may change an earlier one. */
export const hasNotes = (env: NotesEnv): boolean => (env.notes?.defined.size ?? 0) > 0;

/** Teach the parser footnotes: tokens `note_ref`, `note_open` and `note_close`. */
export function footnoteSyntax(md: MarkdownIt): void {
  const escape = md.utils.escapeHtml;
  md.block.ruler.before("reference", "note", definition, { alt: ["paragraph", "reference"] });
  md.inline.ruler.before("link", "note_ref", reference);
  md.core.ruler.after("text_join", "note_line", ({ tokens }) => {
    for (const token of tokens) if (token.type === "inline") keepTogether(token.children ?? []);
  });
  md.renderer.rules.note_ref = (tokens, index, _options, env) => {
    const number = String(numberOf(env, tokens[index].content));
    const name = escape(t("message.footnote", { number }));
    const button =
      `<sup><button type="button" class="note-ref" data-action="to-note" data-note="${number}" aria-label="${name}">${number}</button></sup>`;
    const { word, stops } = tokens[index].meta as { word: string; stops: string };
    return word || stops ? `<span class="note-end">${escape(word)}${button}${escape(stops)}</span>` : button;
  };
  md.renderer.rules.note_open = (tokens, index, _options, env) => {
    const number = String(numberOf(env, tokens[index].content));
    const name = escape(t("message.footnote", { number }));
    return `<aside class="note" role="note" tabindex="-1" data-note="${number}" aria-label="${name}"><span class="note-number">${number}</span><div class="note-text">`;
  };
  md.renderer.rules.note_close = (tokens, index, _options, env) => {
    const label = tokens[index].content;
    if (!notesOf(env).referred.has(label)) return "</div></aside>";
    const name = escape(t("message.back-to-text"));
    return `</div><button type="button" class="note-back" data-action="from-note" data-note="${
      numberOf(env, label)
    }" aria-label="${name}" title="${name}">↩</button></aside>`;
  };
}

/** A number stays on the line of the word before it, and a stop on that of its number: browsers may break a line around any button. */
function keepTogether(children: Token[]): void {
  children.forEach((token, index) => {
    if (token.type !== "note_ref") return;
    const [before, after] = [children[index - 1], children[index + 1]];
    const word = before?.type === "text" ? /\S{1,12}$/u.exec(before.content)?.[0] ?? "" : "";
    const stops = after?.type === "text" ? /^[.,;:!?)\]…。，、]+/.exec(after.content)?.[0] ?? "" : "";
    if (word) before.content = before.content.slice(0, -word.length);
    if (stops) after.content = after.content.slice(stops.length);
    token.meta = { word, stops };
  });
}

function reference(state: StateInline, silent: boolean): boolean {
  if (state.src.charCodeAt(state.pos) !== 0x5b || state.src.charCodeAt(state.pos + 1) !== 0x5e) return false;
  const found = REFERENCE.exec(state.src.slice(state.pos, Math.min(state.posMax, state.pos + 90)));
  const notes = notesOf(state.env);
  if (!found || !notes.defined.has(found[1])) return false;
  if (!silent) {
    numberOf(state.env, found[1]);
    notes.referred.add(found[1]);
    state.push("note_ref", "", 0).content = found[1];
  }
  state.pos += found[0].length;
  return true;
}

/** The note's text is what follows on the line and what is indented below it, as in a list item. */
function definition(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  const isOutside = silent && state.sCount[startLine] < state.blkIndent; // it ends the note above
  if ((state.level > 0 && !isOutside) || state.sCount[startLine] - state.blkIndent >= 4) return false;
  const start = state.bMarks[startLine] + state.tShift[startLine];
  const found = DEFINITION.exec(state.src.slice(start, Math.min(state.eMarks[startLine], start + 120)));
  if (!found) return false;
  if (silent) return true;
  const label = found[1];
  notesOf(state.env).defined.add(label);
  const open = state.push("note_open", "aside", 1);
  open.content = label;
  open.map = [startLine, startLine + 1];
  const before = {
    bMark: state.bMarks[startLine],
    tShift: state.tShift[startLine],
    sCount: state.sCount[startLine],
    blkIndent: state.blkIndent,
    parentType: state.parentType,
  };
  state.bMarks[startLine] = start + found[0].length;
  state.tShift[startLine] = 0;
  state.sCount[startLine] = before.blkIndent + 4;
  state.blkIndent += 4;
  state.parentType = "list";
  state.md.block.tokenize(state, startLine, endLine);
  state.blkIndent = before.blkIndent;
  state.parentType = before.parentType;
  state.bMarks[startLine] = before.bMark;
  state.tShift[startLine] = before.tShift;
  state.sCount[startLine] = before.sCount;
  open.map[1] = state.line;
  state.push("note_close", "aside", -1).content = label;
  return true;
}
