// A person's own words: shown exactly as typed, except that code between fences is shown as code.

import { codeFigure } from "./code.ts";
import { dress } from "./dress.ts";
import { markupToNodes } from "./sanitise.ts";

const OPEN = /^ {0,3}(`{3,})([^`\n]*)$/;

/** A stretch of a text. `language`: of code, "" where none is named; null for words. */
export interface Piece {
  text: string;
  language: string | null;
}

/** Cut a text at its fenced code blocks. A fence that is never closed is words. Pure. */
export function piecesOf(text: string): Piece[] {
  const lines = text.split("\n");
  const pieces: Piece[] = [];
  let words: string[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const open = OPEN.exec(lines[at]);
    const end = open ? endOfFence(lines, at, open[1].length) : -1;
    if (!open || end < 0) {
      words.push(lines[at]);
      continue;
    }
    if (words.length) pieces.push({ text: words.join("\n"), language: null });
    words = [];
    pieces.push({ text: lines.slice(at + 1, end).join("\n"), language: languageIn(open[2]) });
    at = end;
  }
  if (words.length) pieces.push({ text: words.join("\n"), language: null });
  return pieces;
}

const languageIn = (info: string): string => info.trim().split(/\s+/)[0].toLowerCase().replace(/[^\w+#.-]/g, "");

function endOfFence(lines: string[], from: number, length: number): number {
  const close = new RegExp(`^ {0,3}\`{${length},}[ \\t]*$`);
  for (let at = from + 1; at < lines.length; at += 1) if (close.test(lines[at])) return at;
  return -1;
}

/** The nodes of a person's message: text nodes, and figures of code. */
export function renderPlain(text: string): Node[] {
  const pieces = piecesOf(text);
  if (pieces.every((piece) => piece.language === null)) return [document.createTextNode(text)];
  return pieces.flatMap((piece): Node[] => {
    if (piece.language !== null) {
      const figures = [...markupToNodes(codeFigure(`${piece.text}\n`, piece.language)).children];
      dress(figures);
      return figures;
    }
    const words = piece.text.replace(/^\n+|\n+$/g, ""); // the figure has its own distance
    return words.trim() === "" ? [] : [document.createTextNode(words)];
  });
}
