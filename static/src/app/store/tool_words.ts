// What people read of a tool call: its title, which is not the name that the model uses, and what tells one call from the next.
// Pure.

import { type MessageKey, t } from "../lib/i18n.ts";
import { toolName } from "./fold.ts";
import { callTitle } from "./tool_details.ts";
import { kindOf, type ToolKind } from "./tool_kinds.ts";
import type { ToolPart } from "./types.ts";

const LONGEST_HINT = 60;
const LONGEST_PATH = 30;

const TITLES: { readonly [kind in ToolKind]: MessageKey } = {
  read: "tools.title-read",
  write: "tools.title-write",
  edit: "tools.title-edit",
  delete: "tools.title-delete",
  list: "tools.title-list",
  find: "tools.title-find",
  grep: "tools.title-grep",
  bash: "tools.title-bash",
  execute: "tools.title-execute",
  fetch: "tools.title-fetch",
};

/** "search_orders" as "Search orders", "getWeather" as "Get weather". */
export function humanised(name: string): string {
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/[_\-.\s]+/g, " ").trim();
  const lower = words.replace(/\b[A-Z][a-z]+/g, (word) => word.toLowerCase());
  return lower.charAt(0).toUpperCase() + lower.slice(1);
}

/** The title that the tool has for people; else that of its kind, or its name in words. */
export function titleOfTool(part: ToolPart): string {
  const given = part.title || part.approval?.descriptor?.title;
  if (given) return given;
  const kind = kindOf(part);
  return kind ? t(TITLES[kind]) : humanised(toolName(part) ?? "");
}

/** What this call does as the tool tells it; else the first short value of the arguments. */
export function hintOf(part: ToolPart): string {
  const title = callTitle(part);
  if (title) return title;
  const { input } = part;
  if (!input || typeof input !== "object") return "";
  const value = Object.values(input).find((item) => typeof item === "string" || typeof item === "number");
  const text = value === undefined ? "" : String(value).replace(/\s+/g, " ").trim();
  const file = /^\S*\/([^/\s]+\/[^/\s]+)$/.exec(text);
  if (file && text.length > LONGEST_PATH) return `…/${file[1]}`; // of a path its end tells more
  return text.length > LONGEST_HINT ? `${text.slice(0, LONGEST_HINT - 1)}…` : text;
}
