// Which summaries stand for messages on the shown path. Pure: the same walk as the server's, from the end to the root.

/**
 * Where the lines of summaries go: a map from the id of the last message that a summary covers to the summaries that
 * end there, each {compaction, isUsed}. One that ends on another branch is on no line.
 */
export function linesOf(messages, compactions) {
  const ending = new Map();
  for (const compaction of compactions) {
    if (compaction.undone_at) continue;
    if (!ending.has(compaction.last_id)) ending.set(compaction.last_id, []);
    ending.get(compaction.last_id).unshift(compaction); // oldest first in, newest first out
  }
  const lines = new Map();
  let covering = null; // id of the first message of the summary that we are inside of
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const { id } = messages[at];
    const here = ending.get(id) ?? [];
    const isFree = covering === null;
    lines.set(id, here.map((compaction, index) => ({ compaction, isUsed: isFree && index === 0 })));
    if (isFree && here.length) covering = here[0].first_id;
    if (id === covering) covering = null;
  }
  return new Map([...lines].filter(([, items]) => items.length));
}
