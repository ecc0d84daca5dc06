// Which calls are of a kind that the page knows how to show: by the tool's name, of which there are several generations, and by
// the arguments that such a call has. Anything else is shown as what it is. Pure.

import { toolName } from "./fold.ts";
import { isRecord } from "./tool_details.ts";
import type { ToolPart } from "./types.ts";

export type ToolKind =
  | "read"
  | "write"
  | "edit"
  | "delete"
  | "list"
  | "find"
  | "grep"
  | "bash"
  | "execute"
  | "fetch";

const KINDS: readonly (readonly [ToolKind, RegExp, readonly string[]])[] = [
  ["read", /^read(project)?(file)?$/, ["path", "file_path"]],
  ["write", /^(write|create)(file)?$/, ["path", "file_path"]],
  ["edit", /^edit(file)?$/, ["path", "file_path"]],
  ["delete", /^(delete|remove)(file)?$|^rm$/, ["path", "file_path"]],
  ["list", /^list(files|dir(ectory)?)?$|^ls$/, []],
  ["find", /^find(project)?(files)?$|^glob$/, ["pattern"]],
  ["grep", /^grep(projectfiles)?$|^search(text|infiles)$/, ["query", "pattern"]],
  ["bash", /^bash$|^shell$/, ["script", "command"]],
  ["execute", /^execute(code)?$|^codemode$/, ["code"]],
  ["fetch", /^fetch/, ["url"]],
];

/** The kind of a call; null where the page knows nothing of it, or not yet. */
export function kindOf(part: ToolPart): ToolKind | null {
  const name = toolName(part).toLowerCase().replace(/[_\-]/g, "");
  const found = KINDS.find(([, pattern]) => pattern.test(name));
  if (!found) return null;
  const [kind, , wanted] = found;
  const given = isRecord(part.input) ? part.input : null;
  if (!given) return null;
  return !wanted.length || wanted.some((field) => typeof given[field] === "string") ? kind : null;
}

/** Whether a call reads files of the conversation's project: these are in no panel. */
export const isOfProject = (part: ToolPart): boolean => /_project_files?$/.test(toolName(part));

/** The first of these arguments that is a text, else "". */
export function argumentOf(part: ToolPart, ...names: string[]): string {
  const given = isRecord(part.input) ? part.input : {};
  const found = names.map((name) => given[name]).find((value) => typeof value === "string");
  return (found as string | undefined) ?? "";
}

/** The file that a call is about, with its leading slash; "" where it names none. */
export function pathOf(part: ToolPart): string {
  const path = argumentOf(part, "path", "file_path").trim();
  return path ? normalised(path) : "";
}

/** A path within the workspace as the server writes it. */
export function normalised(path: string): string {
  const kept: string[] = [];
  for (const name of path.split("/")) {
    if (name === "..") kept.pop();
    else if (name && name !== ".") kept.push(name);
  }
  return `/${kept.join("/")}`;
}
