// Which summaries stand for messages on the shown path. Pure: the same walk as the server's, from the end to the root.

import type { Compaction, Message } from "./types.ts";

/** A summary on its line. `isUsed`: the model reads it instead of the messages above; else a later one stands for them. */
export interface SummaryLine {
  compaction: Compaction;
  isUsed: boolean;
}

/**
 * Where the lines of summaries go: a map from the id of the last message that a summary covers to the summaries that
 * end there. One that ends on another branch is on no line.
 */
export function linesOf(
  messages: readonly Pick<Message, "id">[],
  compactions: readonly Compaction[],
): Map<string, SummaryLine[]> {
  const ending = new Map<string, Compaction[]>();
  for (const compaction of compactions) {
    if (compaction.undone_at) continue;
    // oldest first in, newest first out
    ending.set(compaction.last_id, [compaction, ...(ending.get(compaction.last_id) ?? [])]);
  }
  const lines = new Map<string, SummaryLine[]>();
  let covering: string | null = null; // id of the first message of the summary that we are inside of
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const { id } = messages[at];
    const here: Compaction[] = ending.get(id) ?? [];
    const isFree = covering === null;
    if (here.length) lines.set(id, here.map((compaction, index) => ({ compaction, isUsed: isFree && index === 0 })));
    if (isFree && here.length) covering = here[0].first_id;
    if (id === covering) covering = null;
  }
  return lines;
}
