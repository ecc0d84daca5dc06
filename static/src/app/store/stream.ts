// One running (or just finished) turn as this browser follows it: which chunks it has, and the message they fold into.

import type { Chunk, StatusData } from "../net/frames.ts";
import { applyChunk, isSettled, isTool } from "./fold.ts";
import { isRecord } from "./tool_details.ts";
import type { Message, Retry, Wait } from "./types.ts";

/** What became of a chunk: "old" was seen before, before a "gap" some are missing: ask for a replay. */
export type Verdict = "applied" | "old" | "gap" | "ignored";

/** What is at work: a model or a tool by its name, since when in milliseconds of this browser's clock. */
export interface Activity {
  kind: "model" | "tool";
  name: string;
  since: number;
  /** The model that failed, where this one answers in its place. */
  insteadOf?: string;
}

/** What a page says of a turn that runs. */
export interface Expected {
  waits: Wait[];
  retry: Retry | null;
  activity: Activity | null;
}

export class TurnStream {
  readonly requestId: string;
  turnId = "";
  message: Message | null = null;
  /** Offset of the last chunk taken. */
  lastSeq = -1;
  errorText = "";
  /** What it is parked for. */
  waits: Wait[] = [];
  /** When its model is asked again. */
  retry: Retry | null = null;
  activity: Activity | null = null;
  /** Whether something came since it was at work. */
  hasSpoken = false;
  /** When something last came. */
  lastSignAt = Date.now();
  isDone = false;
  wantsReplay = false;
  /** A page said that nothing runs although no end has come. */
  wasMissing = false;
  /** A page that was older than its end was left out: what the next one says is taken. */
  isLookedAfter = false;

  constructor(requestId: string) {
    this.requestId = requestId;
  }

  /** "waiting" before the first chunk, then "answering". */
  get phase(): "waiting" | "answering" {
    return this.message ? "answering" : "waiting";
  }

  /** Whether it waits for something that it has reported. */
  get isPaused(): boolean {
    return this.waits.length > 0 || this.retry !== null;
  }

  /** Take over what a page says of its waits. */
  expect({ waits, retry, activity }: Expected): void {
    this.waits = waits;
    this.retry = retry;
    this.activity = activity;
  }

  /** Take one chunk. `openMessage(id)` gives the message to fold into when the stream names it. */
  take(chunk: Chunk, seq: number | undefined, openMessage: (id: string) => Message): Verdict {
    this.lastSignAt = Date.now();
    if (seq !== undefined && Number.isInteger(seq)) {
      if (seq <= this.lastSeq) return "old";
      if (seq > this.lastSeq + 1) return "gap";
      this.lastSeq = seq;
    }
    this.#noteStatus(chunk);
    if (chunk.type === "start" && chunk.messageId && this.message?.id !== chunk.messageId) {
      this.message = openMessage(chunk.messageId);
    }
    if (!this.message) return "ignored";
    if (chunk.type === "data-think-progress") return noteProgress(this.message, chunk.data) ? "applied" : "ignored";
    return applyChunk(this.message, chunk) ? "applied" : "ignored";
  }

  /** Whatever comes after a wait says that it is over. What is at work stays so until another thing is. */
  #noteStatus(chunk: Chunk): void {
    const status = chunk.type === "data-think-status" ? chunk.data as StatusData | undefined : undefined;
    this.waits = status?.kind === "waiting" ? status.waits ?? [] : [];
    this.retry = status?.kind === "retry" ? retryOf(status) : null;
    if (status) this.hasSpoken = false;
    else if (!chunk.type.startsWith("data-")) this.hasSpoken = true;
    if (status?.kind === "model" || status?.kind === "tool") this.activity = activityOf(status);
    else if (status) this.activity = null;
  }
}

/** What a running call tells of itself. It is in no stored message: what the call said last comes with its result. */
function noteProgress(message: Message, data: unknown): boolean {
  const { toolCallId, ...reported } = isRecord(data) ? data : {};
  const part = message.parts.filter(isTool).findLast((call) => call.toolCallId === toolCallId);
  if (!part || isSettled(part)) return false;
  part.reported = reported;
  return true;
}

/** A clock that is behind the server's must not make the wait longer than it is. */
function retryOf({ code, attempt, attempts, delaySeconds, retryAt }: Extract<StatusData, { kind: "retry" }>): Retry {
  return { code, attempt, attempts, retryAt: Math.min(Date.parse(retryAt), Date.now() + delaySeconds * 1000) };
}

/** What is at work, by this browser's clock: it never began later than now. Without an instant it begins now. */
export function activityOf(
  { kind, name = "", since, insteadOf }: Extract<StatusData, { kind: "model" | "tool" }>,
): Activity {
  const began = since ? Date.parse(since) : NaN;
  return {
    kind,
    name,
    insteadOf: insteadOf?.model,
    since: Math.min(Number.isNaN(began) ? Date.now() : began, Date.now()),
  };
}
