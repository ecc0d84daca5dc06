// What calls of known kinds returned, in this code's words. What is not as it should be gives null: then the value itself is
// shown. Pure.

import { isRecord, textIn } from "./tool_details.ts";
import { argumentOf, pathOf } from "./tool_kinds.ts";
import type { ToolPart } from "./types.ts";

/** An error that a tool returned as a value; "" where there is none. */
export function errorIn(output: unknown): string {
  const given = isRecord(output) ? output.error : undefined;
  if (typeof given === "string") return given;
  if (isRecord(output) && output.ok === false) return textIn(output, "message") || textIn(output, "code");
  if (!isRecord(given)) return "";
  return textIn(given, "message") || textIn(given, "code");
}

/** What a result consists of: a server of MCP may give a text and a value, which are shown one after the other. */
export function textAndValue(output: unknown): unknown[] {
  if (!isRecord(output) || Object.keys(output).length !== 2) return [output];
  const { text, structuredContent } = output;
  return typeof text === "string" && structuredContent !== undefined ? [text, structuredContent] : [output];
}

const numberIn = (value: Record<string, unknown>, ...names: string[]): number | null =>
  (names.map((name) => value[name]).find((found) => typeof found === "number") as number | undefined) ?? null;

const textOf = (value: Record<string, unknown>, ...names: string[]): string =>
  names.map((name) => textIn(value, name)).find(Boolean) ?? "";

// --- read -----------------------------------------------------------------------------------------------------------

export interface ReadText {
  path: string;
  text: string;
  /** Of the first line; they count from 1. */
  firstLine: number;
  totalLines: number | null;
}

/** The lines of a file, without the numbers that models get with them. */
export function readText(part: ToolPart): ReadText | null {
  if (!isRecord(part.output) || typeof part.output.content !== "string") return null;
  const { output } = part;
  const lines = (output.content as string).split("\n");
  const numbers = lines.map((line) => /^\s*(\d+)\t/.exec(line));
  const isNumbered = numbers[0] !== null;
  return {
    path: pathOf(part),
    text: lines.map((line, at) => isNumbered ? line.slice(numbers[at]?.[0].length ?? 0) : line).join("\n"),
    firstLine: isNumbered ? Number(numbers[0]![1]) : numberIn(output, "fromLine") ?? 1,
    totalLines: numberIn(output, "totalLines"),
  };
}

// --- list, find -----------------------------------------------------------------------------------------------------

export interface Listed {
  name: string;
  size: string;
  isDirectory: boolean;
}

const ENTRY = /^(.*?)(?: \(([\d.,]+ ?[KMGT]?i?B)\))?$/s;

/** Entries of a directory, or paths that were found. */
export function listing(output: unknown): Listed[] | null {
  const items = isRecord(output) ? output.entries ?? output.files : output;
  if (!Array.isArray(items) || !items.every((item) => typeof item === "string")) return null;
  return items.map((item: string) => {
    const [, name, size] = ENTRY.exec(item) ?? ["", item, ""];
    return { name, size: size ?? "", isDirectory: name.endsWith("/") };
  });
}

/** How many there are altogether, where the result names it. */
export const countIn = (output: unknown): number | null =>
  isRecord(output) ? numberIn(output, "totalMatches", "count") : null;

// --- grep -----------------------------------------------------------------------------------------------------------

export interface Match {
  line: number;
  text: string;
  /** A line around the one that matches. */
  isContext: boolean;
}

export interface MatchedFile {
  path: string;
  matches: Match[];
}

/** Matches by file, in the order of the result. */
export function matchesIn(output: unknown): MatchedFile[] | null {
  if (!isRecord(output) || !Array.isArray(output.matches)) return null;
  const files = new Map<string, Match[]>();
  for (const item of output.matches) {
    const found = typeof item === "string" ? oneLine(item) : isRecord(item) ? withContext(item) : null;
    if (!found) return null;
    files.set(found.path, [...(files.get(found.path) ?? []), ...found.matches]);
  }
  return [...files].map(([path, matches]) => ({ path, matches }));
}

/** `file:line: text` */
function oneLine(item: string): MatchedFile | null {
  const [, path, line, text] = /^(.*?):(\d+): ?(.*)$/s.exec(item) ?? [];
  return path === undefined ? null : { path, matches: [{ line: Number(line), text, isContext: false }] };
}

/** `{file, line, context}` whose lines are `> n<tab>text` where they match; or `{file, line, text}`. */
function withContext(item: Record<string, unknown>): MatchedFile | null {
  const path = textOf(item, "file", "path");
  const line = numberIn(item, "line");
  if (!path || line === null) return null;
  const { context } = item;
  const lines = typeof context === "string" ? context.split("\n") : Array.isArray(context) ? context.map(String) : [];
  if (!lines.length) return { path, matches: [{ line, text: textOf(item, "text"), isContext: false }] };
  const matches = lines.map((given) => {
    const [, mark, number, text] = /^([> ]) ?\s*(\d+)\t(.*)$/s.exec(given) ?? [];
    return number === undefined
      ? { line, text: given, isContext: true }
      : { line: Number(number), text, isContext: mark !== ">" };
  });
  return { path, matches };
}

/** Pieces of a line; those that were searched for are hits. A pattern that this browser does not know marks nothing. */
export function hitsIn(text: string, part: ToolPart): { text: string; isHit: boolean }[] {
  const pattern = patternOf(part);
  const whole = [{ text, isHit: false }];
  if (!pattern || text.length > LONGEST_MARKED) return whole;
  const pieces: { text: string; isHit: boolean }[] = [];
  let at = 0;
  for (const found of text.matchAll(pattern)) {
    if (!found[0]) continue;
    if (found.index > at) pieces.push({ text: text.slice(at, found.index), isHit: false });
    pieces.push({ text: found[0], isHit: true });
    at = found.index + found[0].length;
  }
  if (at < text.length) pieces.push({ text: text.slice(at), isHit: false });
  return pieces.length ? pieces : whole;
}

const LONGEST_MARKED = 500; // of a line
const LONGEST_PATTERN = 100;
const MOST_REPEATS = 2; // more, or one in another, could take for ever: a server stops that, a page cannot
const NESTED = /[)][*+{]|\\\d/;
const SPECIAL = /[\\^$.*+?()[\]{}|]/g;

function patternOf(part: ToolPart): RegExp | null {
  const query = argumentOf(part, "query", "pattern");
  const input = isRecord(part.input) ? part.input : {};
  if (!query || query.length > LONGEST_PATTERN) return null;
  const isFixed = input.fixedString === true;
  if (!isFixed && (NESTED.test(query) || query.replace(/[^*+{]/g, "").length > MOST_REPEATS)) return null;
  try {
    return new RegExp(isFixed ? query.replace(SPECIAL, "\\$&") : query, input.caseSensitive === true ? "gu" : "giu");
  } catch {
    return null;
  }
}

// --- bash -----------------------------------------------------------------------------------------------------------

export interface TerminalRun {
  script: string;
  directory: string;
  stdout: string;
  stderr: string;
  exitCode: number | null;
  /** Paths by what became of them. */
  changed: { fate: string; paths: string[] }[];
}

/** A run of a script, of one that still runs as well. */
export function terminalRun(part: ToolPart, metadata: Record<string, unknown>): TerminalRun | null {
  const { output } = part;
  const given = isRecord(output) ? output : metadata;
  const isText = typeof output === "string";
  if (output !== undefined && !isText && !isRecord(output)) return null;
  if (isRecord(output) && !["stdout", "stderr", "exitCode"].some((name) => name in output)) return null;
  const changed = isRecord(given.changedFiles) ? given.changedFiles : {};
  return {
    script: argumentOf(part, "script", "command"),
    directory: argumentOf(part, "cwd"),
    stdout: isText ? output : textOf(given, "stdout", "output"),
    stderr: textOf(given, "stderr"),
    exitCode: numberIn(given, "exitCode", "exit_code"),
    changed: Object.entries(changed).flatMap(([fate, paths]) =>
      Array.isArray(paths) && paths.length ? [{ fate, paths: paths.map(String) }] : []
    ),
  };
}

// --- execute --------------------------------------------------------------------------------------------------------

export interface InnerCall {
  name: string;
  isOk: boolean | null;
  ms: number | null;
}

export interface CodeRun {
  code: string;
  calls: InnerCall[];
  console: string;
  /** Undefined where there is none. */
  value: unknown;
}

/** A run of code: its calls are in the result or in what the tool reports while it runs. */
export function codeRun(part: ToolPart, metadata: Record<string, unknown>): CodeRun {
  const output = isRecord(part.output) ? part.output : {};
  const isBare = part.output !== undefined && !isRecord(part.output);
  const calls = Array.isArray(output.calls) ? output.calls : Array.isArray(metadata.calls) ? metadata.calls : [];
  const logs = output.logs ?? output.console ?? metadata.logs ?? metadata.console ?? "";
  return {
    code: argumentOf(part, "code"),
    calls: calls.filter(isRecord).map((call) => ({
      name: textOf(call, "name", "tool"),
      isOk: typeof call.ok === "boolean" ? call.ok : textIn(call, "error") ? false : null,
      ms: numberIn(call, "ms", "duration_ms", "durationMs"),
    })),
    console: Array.isArray(logs) ? logs.map(consoleLine).join("\n") : String(logs),
    value: isBare ? part.output : "result" in output ? output.result : output.value,
  };
}

/** A line of the console; warnings and errors say what they are. */
function consoleLine(line: unknown): string {
  if (!isRecord(line)) return String(line);
  const level = textIn(line, "level");
  const text = textIn(line, "text");
  return level === "warn" || level === "error" ? `[${level}] ${text}` : text;
}

// --- fetch ----------------------------------------------------------------------------------------------------------

export interface Fetched {
  address: string;
  status: number | null;
  title: string;
  mediaType: string;
  text: string;
}

/** A page or a file of the web. */
export function fetched(part: ToolPart): Fetched | null {
  const { output } = part;
  if (typeof output === "string") {
    return { address: argumentOf(part, "url"), status: null, title: "", mediaType: "", text: output };
  }
  if (!isRecord(output)) return null;
  return {
    address: textOf(output, "finalUrl", "url") || argumentOf(part, "url"),
    status: numberIn(output, "status", "statusCode"),
    title: textOf(output, "title"),
    mediaType: textOf(output, "contentType", "mediaType"),
    text: textOf(output, "content", "text", "body", "markdown"),
  };
}
