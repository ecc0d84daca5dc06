// What stands in the list of a conversation, in order: messages, what is on its way, and the lines of summaries. Pure.

import { isTool } from "./fold.ts";
import { linesOf } from "./overlays.ts";
import type { Compaction, Limit, Message, OutboxEntry } from "./types.ts";

/**
 * How a message that has no place yet is on its way: "behind" and "queued" wait on the server, behind the answer that runs or
 * not; "accepted" was taken by it; "sending", "waiting" and "refused" are in this browser, and so is "after", which waits for the
 * message above it and not for the line. Empty: it has its place.
 */
export type Pending = "" | "behind" | "queued" | "accepted" | "sending" | "waiting" | "after" | "refused";

export interface MessageRow {
  kind: "message";
  message: Message;
  pending: Pending;
  /** Why it was refused. */
  error: string;
  /** It waits for a limit to end. */
  limit: Limit | null;
  /** Nothing of the same answer stands above it. */
  isFirst: boolean;
  /** The answer goes on in the next message: its turn ended with a question, and another took it up. */
  isContinued: boolean;
  /** Messages of the same answer above this one, which ends it; empty for most. */
  earlier: readonly Message[];
}

export interface SummaryRow {
  kind: "summary";
  compaction: Compaction;
  /** The model reads it; a later one does not stand for it. */
  isUsed: boolean;
}

export type Row = MessageRow | SummaryRow;

/** What the rows are made of. */
export interface Shown {
  messages: readonly Message[];
  queued: readonly Message[];
  entries: readonly OutboxEntry[];
  compactions: readonly Compaction[];
  /** One reads elsewhere: what is on its way belongs to another place. */
  isElsewhere: boolean;
  /** The turn that runs, and whether its answer has begun. */
  running: { turnId: string; message: Message | null } | null;
  /** The answer to a message in the outbox, by its request, where it has begun. */
  answerOf: (requestId: string) => Message | null | undefined;
}

const NONE: readonly Message[] = [];

export function rowsOf(shown: Shown): Row[] {
  const rows: Row[] = [];
  const ids = new Set<string>();
  const put = (message: Message, pending: Pending = "", error = "", limit: Limit | null = null) => {
    if (ids.has(message.id)) return;
    ids.add(message.id);
    rows.push({ kind: "message", message, pending, error, limit, isFirst: true, isContinued: false, earlier: NONE });
  };
  const onTheirWay = shown.isElsewhere ? [] : shown.entries.filter((entry) => entry.shown);
  const putEntry = (entry: OutboxEntry) =>
    put(entry.shown!, waitsForAnother(entry, onTheirWay) ? "after" : entry.state, entry.error, entry.limit);
  const lines = linesOf(shown.messages, shown.compactions);
  for (const message of shown.messages) {
    // An answer may come before the page was read again: what it answers stands above it all the same.
    const asked = onTheirWay.find((entry) => shown.answerOf(entry.requestId) === message);
    if (asked) putEntry(asked);
    put(message);
    for (const line of lines.get(message.id) ?? []) rows.push({ kind: "summary", ...line });
  }
  for (const message of shown.queued) put(message, message.isStopped ? "" : queuedAs(message, shown.running));
  onTheirWay.forEach(putEntry);
  joinAnswers(rows);
  return rows;
}

/** Nothing keeps it back but a message above it, which the server does not take yet. */
function waitsForAnother(entry: OutboxEntry, all: readonly OutboxEntry[]): boolean {
  const isHeld = ({ state, limit, error }: OutboxEntry) => state === "waiting" && (limit !== null || error !== "");
  return entry.state === "waiting" && !isHeld(entry) && all.slice(0, all.indexOf(entry)).some(isHeld);
}

function queuedAs(message: Message, running: Shown["running"]): Pending {
  const isBehind = running && (message.turn ? message.turn.id !== running.turnId : running.message);
  return isBehind ? "behind" : "queued";
}

/** Let messages that are one answer know of each other. */
function joinAnswers(rows: Row[]): void {
  let above: MessageRow | null = null;
  for (const row of rows) {
    if (row.kind !== "message") continue;
    if (above && isContinuation(row.message, above.message)) {
      above.isContinued = true;
      row.isFirst = false;
      row.earlier = [...above.earlier, above.message];
      above.earlier = NONE;
    }
    above = row;
  }
}

/** Whether a message takes up the answer above it: its turn shows that, and until that is known the answer's open end. */
export function isContinuation(message: Message, above: Message): boolean {
  if (message.role !== "assistant" || above.role !== "assistant") return false;
  return message.turn?.trigger === undefined ? endsWithCall(above) : message.turn.trigger === "continue";
}

/** An answer ends with words; one that ends with a call was interrupted there. */
function endsWithCall(message: Message): boolean {
  const last = message.parts.findLast((part) => part.type !== "step-start" && !part.type.startsWith("data-"));
  return last !== undefined && isTool(last);
}
