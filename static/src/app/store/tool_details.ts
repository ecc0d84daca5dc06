// What is known of a call besides its arguments and its result: the server keeps it in the part's metadata. Pure.

import { isSettled } from "./fold.ts";
import type { FilePart, ToolPart } from "./types.ts";

/** A file that a call returned. `error`: why it was not kept. */
export type CallFile = FilePart & { error?: string };

/** The whole of an output that was cut. `url` is empty where it was not kept. */
export interface WholeOutput {
  url: string;
  bytes: number;
  lines: number;
}

export interface CallDetails {
  /** What this call does, in the tool's words for people. */
  title: string;
  metadata: Record<string, unknown>;
  files: CallFile[];
  whole: WholeOutput | null;
}

/** Whether a value is an object with names. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A field of an object if it is a text, else "". */
export const textIn = (value: unknown, name: string): string => {
  const found = isRecord(value) ? value[name] : undefined;
  return typeof found === "string" ? found : "";
};

const detailsIn = (part: ToolPart): unknown =>
  isSettled(part) ? part.toolMetadata?.think : part.reported ?? part.toolMetadata?.think;

/** The title of this call, of a running one as well; "" where the tool gave none. */
export const callTitle = (part: ToolPart): string => textIn(detailsIn(part), "title");

/** All of it. Whatever is not as it should be is left out. */
export function detailsOf(part: ToolPart): CallDetails {
  const given = detailsIn(part);
  const details = isRecord(given) ? given : {};
  const files = Array.isArray(details.attachments) ? details.attachments.filter(isRecord) : [];
  return {
    title: callTitle(part),
    metadata: isRecord(details.metadata) ? details.metadata : {},
    files: files.map((file) => ({
      type: "file",
      url: textIn(file, "url"),
      mediaType: textIn(file, "mediaType"),
      filename: textIn(file, "filename"),
      error: textIn(file, "error"),
    })),
    whole: isRecord(details.whole) ? wholeOf(details.whole) : null,
  };
}

const wholeOf = (whole: Record<string, unknown>): WholeOutput => ({
  url: textIn(whole, "url"),
  bytes: Number(whole.bytes) || 0,
  lines: Number(whole.lines) || 0,
});
