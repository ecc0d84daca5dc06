// The first title of a conversation: the first words of its first message. A person can change it.

import { withoutMarkup } from "../app/lib/markup.ts";
import { textOf } from "./message_view.js";

const TITLE_LENGTH = 60;

/** At most 60 characters of the first line, cut between words; the name of a file where there is no text. */
export function titleFor(message) {
  const firstLine = withoutMarkup(message ? textOf(message) : "").trim().split("\n")[0];
  const text = firstLine.replace(/\s+/g, " ") || message?.parts.find((part) => part.filename)?.filename || "";
  if (text.length <= TITLE_LENGTH) return text;
  return `${text.slice(0, TITLE_LENGTH).replace(/\s+\S*$/, "")}…`;
}
