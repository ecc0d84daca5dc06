// Pieces of code that are shown as what they describe: which one, and its text as it is now.

import { fencesOf } from "../lib/markdown.ts";
import { piecesOf } from "../lib/plain.ts";
import { kindOfLanguage, type PreviewKind } from "../lib/preview_kinds.ts";
import type { Conversation } from "./conversation.ts";
import type { Message, TextPart } from "./types.ts";

/** A piece of code in a message: the part of it, and which of its pieces. `text`: as it was when it was last seen. */
export interface BlockPlace {
  messageId: string;
  part: number;
  fence: number;
  kind: PreviewKind;
  text: string;
}

/** `isOpen`: it is still being written. */
export interface Block {
  text: string;
  isOpen: boolean;
}

interface Fence {
  language: string;
  code: string;
}

function fencesIn(message: Message, part: number): Fence[] {
  const { text } = message.parts[part] as TextPart;
  if (message.role === "assistant") return fencesOf(text);
  return piecesOf(text).flatMap(({ language, text: code }) => (language === null ? [] : [{ language, code }]));
}

const messageOf = ({ messages, running }: Conversation, id: string): Message | null =>
  messages.find((message) => message.id === id) ?? (running?.message?.id === id ? running.message : null);

/** Find the piece of code that a figure shows; null where the message has none like it, or it is of no kind. */
export function placeOfCode(conversation: Conversation, messageId: string, language: string, code: string) {
  const kind = kindOfLanguage(language);
  if (!kind) return null;
  const shown = code.trim();
  const message = messageOf(conversation, messageId);
  for (const [part, { type }] of message?.parts.entries() ?? []) {
    if (type !== "text") continue;
    const fence = fencesIn(message!, part).findIndex((each) =>
      each.language === language && each.code.trim().startsWith(shown) // while it is written there may be more by now
    );
    if (fence >= 0) return { messageId, part, fence, kind, text: code } satisfies BlockPlace;
  }
  return { messageId: "", part: 0, fence: 0, kind, text: code } satisfies BlockPlace; // of a summary, say: it stays as it is
}

/** Its text now. A message that is gone leaves it as it was. */
export function blockOf(conversation: Conversation, place: BlockPlace): Block {
  const message = place.messageId ? messageOf(conversation, place.messageId) : null;
  if (message?.parts[place.part]?.type !== "text") return { text: place.text, isOpen: false };
  const found = fencesIn(message, place.part);
  const text = found[place.fence]?.code ?? place.text;
  return { text, isOpen: message.isLive && place.fence === found.length - 1 };
}
