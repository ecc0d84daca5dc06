// The first title of a conversation: the first words of its first message. A person can change it.

import { withoutMarkup } from "../lib/markup.ts";
import { textOf } from "./text_of.ts";
import type { Message } from "./types.ts";

const TITLE_LENGTH = 60;

/** At most 60 characters of the first line, cut between words; the name of a file where there is no text. */
export function titleFor(message: Pick<Message, "parts"> | null): string {
  if (!message) return "";
  const [firstLine] = withoutMarkup(textOf(message)).trim().split("\n");
  const text = firstLine.replace(/\s+/g, " ") || fileName(message);
  if (text.length <= TITLE_LENGTH) return text;
  return `${text.slice(0, TITLE_LENGTH).replace(/\s+\S*$/, "")}…`;
}

function fileName({ parts }: Pick<Message, "parts">): string {
  for (const part of parts) if (part.type === "file" && part.filename) return part.filename;
  return "";
}
