// The files that an answer has changed, as its own calls tell it: those that went well, whatever became of the files since. Pure.

import { isSettled, isTool } from "./fold.ts";
import { isRecord } from "./tool_details.ts";
import { kindOf, normalised, pathOf } from "./tool_kinds.ts";
import type { Message, Part, ToolPart } from "./types.ts";

export type FileFate = "created" | "updated" | "deleted";

/** One file, with the calls that changed it, in their order. */
export interface ChangedFile {
  path: string;
  fate: FileFate;
  calls: ToolPart[];
}

const FATES: readonly FileFate[] = ["created", "updated", "deleted"];

/** What the calls of these messages have changed, in the order in which it was changed first. */
export function changedFiles(messages: readonly Pick<Message, "parts">[]): ChangedFile[] {
  const found = new Map<string, ChangedFile>();
  for (const part of messages.flatMap((message) => message.parts).filter(wentWell)) {
    for (const [path, fate] of changesOf(part)) {
      const known = found.get(path);
      if (known) {
        known.fate = after(known.fate, fate);
        known.calls.push(part);
      } else found.set(path, { path, fate, calls: [part] });
    }
  }
  return [...found.values()];
}

const after = (before: FileFate, now: FileFate): FileFate =>
  before === "created" && now === "updated" ? "created" : before === "deleted" && now === "created" ? "updated" : now;

/** File tools give their errors as values. */
function wentWell(part: Part): part is ToolPart {
  return isTool(part) && part.state === "output-available" && isSettled(part) &&
    !(isRecord(part.output) && typeof part.output.error === "string");
}

function changesOf(part: ToolPart): [string, FileFate][] {
  const output = isRecord(part.output) ? part.output : {};
  switch (kindOf(part)) {
    case "write":
    case "edit":
      return [[pathOf(part), output.created === true ? "created" : "updated"]];
    case "delete":
      return [[pathOf(part), "deleted"]];
    case "bash":
    case "execute":
      return listed(output.changedFiles);
    default:
      return [];
  }
}

function listed(changed: unknown): [string, FileFate][] {
  if (!isRecord(changed)) return [];
  return FATES.flatMap((fate) => pathsIn(changed[fate]).map((path): [string, FileFate] => [path, fate]));
}

const pathsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((path) => typeof path === "string").map(normalised) : [];
