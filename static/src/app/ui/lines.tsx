// Text of any length, line by line: code with its colours and numbers, or the output of a program. What is out of sight costs
// nothing: long texts are cut into blocks that the browser draws only near what is seen, and stay one text for its search.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { showCode } from "../lib/highlight.ts";

const MOST_IN_ONE = 60_000; // characters, as many as are coloured
const BLOCK_LINES = 200;
const LINE_EM = 1.55;

interface Props {
  text: string;
  /** What it is called when it is read out. */
  label: string;
  language?: string;
  /** The number of the first line; without it lines have no numbers. */
  firstLine?: number;
  class?: string;
}

interface Piece {
  text: string;
  firstLine: number;
  count: number;
}

export function Lines({ text, label, language = "", firstLine, class: className }: Props) {
  const pieces = useMemo(() => piecesOf(text, firstLine ?? 1), [text, firstLine]);
  return (
    <div class={`lines ${className ?? ""}`.trim()} role="group" tabIndex={0} aria-label={label} dir="ltr">
      {pieces.map((piece) => (
        <Block
          key={piece.firstLine}
          piece={piece}
          language={pieces.length === 1 ? language : ""}
          hasNumbers={firstLine !== undefined}
        />
      ))}
    </div>
  );
}

function Block({ piece, language, hasNumbers }: { piece: Piece; language: string; hasNumbers: boolean }) {
  const code = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => showCode(code.current!, piece.text, language), [piece.text, language]);
  const height = `auto ${piece.count * LINE_EM}em`;
  return (
    <div class="lines-block" style={{ containIntrinsicBlockSize: height }}>
      {hasNumbers && <pre class="lines-numbers" aria-hidden="true">{numbers(piece)}</pre>}
      <pre class="lines-text" ref={code} />
    </div>
  );
}

function piecesOf(text: string, firstLine: number): Piece[] {
  const lines = text.replace(/\n$/, "").split("\n");
  if (text.length <= MOST_IN_ONE) return [{ text: lines.join("\n"), firstLine, count: lines.length }];
  const pieces: Piece[] = [];
  for (let at = 0; at < lines.length; at += BLOCK_LINES) {
    const some = lines.slice(at, at + BLOCK_LINES);
    pieces.push({ text: some.join("\n"), firstLine: firstLine + at, count: some.length });
  }
  return pieces;
}

const numbers = ({ firstLine, count }: Piece): string =>
  Array.from({ length: count }, (_, at) => firstLine + at).join("\n");
