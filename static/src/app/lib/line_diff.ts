// Compares two texts by lines: the fewest lines that are gone and added, by the greedy algorithm of Myers (1986). Pure.

import type { DiffLine } from "./diff.ts";

const CONTEXT = 3;
const MOST_STEPS = 400; // beyond, the middle is shown as replaced: comparing would take longer than reading

type Kind = "same" | "gone" | "added";
interface Line {
  kind: Kind;
  text: string;
}

export interface LineDiff {
  lines: DiffLine[];
  added: number;
  removed: number;
}

/** The changes from one text to another as lines with their signs, with three equal lines around each change. */
export function lineDiff(before: string, after: string): LineDiff {
  const all = compare(linesOf(before), linesOf(after));
  return {
    lines: withContext(all),
    added: all.filter((line) => line.kind === "added").length,
    removed: all.filter((line) => line.kind === "gone").length,
  };
}

const linesOf = (text: string): string[] => text === "" ? [] : text.replace(/\n$/, "").split("\n");

function compare(before: string[], after: string[]): Line[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const as = (kind: Kind, texts: string[]): Line[] => texts.map((text) => ({ kind, text }));
  return [
    ...as("same", before.slice(0, start)),
    ...middle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...as("same", before.slice(before.length - end)),
  ];
}

function middle(before: string[], after: string[]): Line[] {
  const trace = search(before, after);
  if (trace) return walkBack(before, after, trace);
  return [
    ...before.map((text): Line => ({ kind: "gone", text })),
    ...after.map((text): Line => ({ kind: "added", text })),
  ];
}

/** How far each diagonal was reached with each number of changes; null where there are too many. */
function search(before: string[], after: string[]): Map<number, number>[] | null {
  const trace: Map<number, number>[] = [];
  let reached = new Map([[1, 0]]);
  for (let steps = 0; steps <= Math.min(before.length + after.length, MOST_STEPS); steps += 1) {
    trace.push(new Map(reached));
    const next = new Map(reached);
    for (let diagonal = -steps; diagonal <= steps; diagonal += 2) {
      let x = comesDown(next, diagonal, steps) ? next.get(diagonal + 1)! : next.get(diagonal - 1)! + 1;
      while (x < before.length && x - diagonal < after.length && before[x] === after[x - diagonal]) x += 1;
      next.set(diagonal, x);
      if (x >= before.length && x - diagonal >= after.length) return trace;
    }
    reached = next;
  }
  return null;
}

const comesDown = (reached: Map<number, number>, diagonal: number, steps: number): boolean =>
  diagonal === -steps || (diagonal !== steps && (reached.get(diagonal - 1) ?? -1) < (reached.get(diagonal + 1) ?? -1));

function walkBack(before: string[], after: string[], trace: Map<number, number>[]): Line[] {
  const lines: Line[] = [];
  let [x, y] = [before.length, after.length];
  for (let steps = trace.length - 1; steps >= 0; steps -= 1) {
    const diagonal = x - y;
    const isDown = comesDown(trace[steps], diagonal, steps);
    const fromX = steps === 0 ? 0 : trace[steps].get(isDown ? diagonal + 1 : diagonal - 1) ?? 0;
    const fromY = steps === 0 ? 0 : fromX - (isDown ? diagonal + 1 : diagonal - 1);
    while (x > fromX && y > fromY) {
      lines.push({ kind: "same", text: before[--x] });
      y -= 1;
    }
    if (steps === 0) break;
    lines.push(isDown ? { kind: "added", text: after[--y] } : { kind: "gone", text: before[--x] });
  }
  return lines.reverse();
}

/** Only what is near a change; where lines are left out, a line says at which line of the later text it goes on. */
function withContext(all: readonly Line[]): DiffLine[] {
  const isNear = new Array<boolean>(all.length).fill(false);
  all.forEach((line, at) => {
    if (line.kind === "same") return;
    for (let near = Math.max(0, at - CONTEXT); near <= Math.min(all.length - 1, at + CONTEXT); near += 1) {
      isNear[near] = true;
    }
  });
  const shown: DiffLine[] = [];
  let place = 0;
  all.forEach((line, at) => {
    if (line.kind !== "gone") place += 1;
    if (!isNear[at]) return;
    const isJump = at > 0 && !isNear[at - 1];
    if (isJump) shown.push({ kind: "place", text: `@@ ${place} @@` });
    shown.push({ kind: line.kind, text: `${SIGNS[line.kind]}${line.text}` });
  });
  return shown;
}

const SIGNS: { readonly [kind in Kind]: string } = { same: " ", gone: "-", added: "+" };
