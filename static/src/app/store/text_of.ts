// What a message says.

import type { Message, Part, TextPart } from "./types.ts";

const isText = (part: Part): part is TextPart => part.type === "text";

/** The texts of a message, with an empty line between them; "" where it has none. */
export const textOf = (message: Pick<Message, "parts">): string =>
  message.parts.filter(isText).map((part) => part.text).join("\n\n");
