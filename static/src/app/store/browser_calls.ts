// What calls of the browser's tools were asked for and what they gave. Pure; loaded with the views of calls.

import { codeRun } from "./call_results.ts";
import { toolName } from "./fold.ts";
import { isRecord } from "./tool_details.ts";
import { argumentOf } from "./tool_kinds.ts";
import type { ToolPart } from "./types.ts";

export interface BrowserStep {
  method: string;
  address: string;
  isOk: boolean;
  ms: number | null;
}

export interface BrowserVisit {
  /** Where the page was; "" where none was named or reached yet. */
  address: string;
  title: string;
  status: number | null;
  /** The page as Markdown; "" for other calls. */
  text: string;
  links: readonly { text: string; address: string }[];
  /** What selectors found; undefined for other calls. */
  data: unknown;
  code: string;
  steps: readonly BrowserStep[];
  /** Pages that are open after code has run. */
  pages: readonly string[];
  console: string;
  value: unknown;
  /** Addresses that were not let through. */
  refused: readonly string[];
}

const NAMES = /^browser_(search|execute|markdown|links|extract|screenshot)$/;

/** Whether this is a call of one of the browser's tools, with arguments that such a call has. */
export function isBrowserCall(part: ToolPart): boolean {
  return NAMES.test(toolName(part) ?? "") && isRecord(part.input);
}

export function browserVisit(part: ToolPart): BrowserVisit {
  const output = isRecord(part.output) ? part.output : {};
  const { code, console, value } = codeRun(part, {});
  return {
    address: textIn(output, "url") || argumentOf(part, "url"),
    title: textIn(output, "title"),
    status: typeof output.status === "number" ? output.status : null,
    text: textIn(output, "markdown"),
    links: recordsIn(output, "links").map((link) => ({ text: textIn(link, "text"), address: textIn(link, "url") })),
    data: output.data,
    code,
    steps: recordsIn(output, "steps").map((step) => ({
      method: textIn(step, "method"),
      address: textIn(step, "url"),
      isOk: step.ok === true,
      ms: typeof step.ms === "number" ? step.ms : null,
    })),
    pages: textsIn(output, "pages"),
    console,
    value: code ? value : undefined,
    refused: textsIn(output, "refused"),
  };
}

/** Whether an address can be a link: nothing but a page of the web. */
export const isWebAddress = (address: string): boolean => /^https?:\/\//i.test(address);

function textIn(value: Record<string, unknown>, name: string): string {
  const found = value[name];
  return typeof found === "string" ? found : "";
}

function textsIn(value: Record<string, unknown>, name: string): string[] {
  const found = value[name];
  return Array.isArray(found) ? found.filter((item) => typeof item === "string") : [];
}

function recordsIn(value: Record<string, unknown>, name: string): Record<string, unknown>[] {
  const found = value[name];
  return Array.isArray(found) ? found.filter(isRecord) : [];
}
