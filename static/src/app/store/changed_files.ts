// The files that the turns of an answer have changed, as the server kept them: also those that scripts and processes changed. Pure.

import type { Schemas } from "../net/api.ts";

export type TurnFile = Schemas["TurnFileOut"];
export type FileFate = TurnFile["kind"];

/** One file, with its change in each turn, in their order. */
export interface ChangedFile {
  path: string;
  fate: FileFate;
  changes: TurnFile[];
}

/** The files of several turns as those of one, in the order in which they were changed first. */
export function joined(turns: readonly (readonly TurnFile[])[]): ChangedFile[] {
  const found = new Map<string, ChangedFile>();
  for (const change of turns.flat()) {
    const known = found.get(change.path);
    if (!known) found.set(change.path, { path: change.path, fate: change.kind, changes: [change] });
    else {
      known.fate = after(known.fate, change.kind);
      known.changes.push(change);
    }
  }
  return [...found.values()];
}

const after = (before: FileFate, now: FileFate): FileFate =>
  before === "created" && now === "updated" ? "created" : before === "deleted" && now === "created" ? "updated" : now;
