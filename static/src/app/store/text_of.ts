// What a message says.

import { isRecord } from "./tool_details.ts";
import type { Message, Part, TextPart } from "./types.ts";

const isText = (part: Part): part is TextPart => part.type === "text";

/** What a person wrote: of a message that was a command, the command. */
export function writtenOf(message: Pick<Message, "parts" | "metadata">): string {
  const { command } = message.metadata;
  return isRecord(command) ? `/${command.name} ${command.arguments}`.trim() : textOf(message);
}

/** The texts of a message, with an empty line between them; "" where it has none. */
export const textOf = (message: Pick<Message, "parts">): string =>
  message.parts.filter(isText).map((part) => part.text).join("\n\n");
