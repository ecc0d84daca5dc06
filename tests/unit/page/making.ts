// What the tests of the page's stores are made with.

import { Emitter } from "../../../static/src/app/lib/events.ts";
import "../../../static/src/app/messages/later.ts"; // what any view may say
import type { Chunk, ClientFrame, ServerFrame } from "../../../static/src/app/net/frames.ts";
import type { LineState, SocketEvents } from "../../../static/src/app/net/socket.ts";
import { fromInstance } from "../../../static/src/app/store/instances.ts";
import type { KeptEntry } from "../../../static/src/app/store/outbox.ts";
import type { RawPage } from "../../../static/src/app/net/types.ts";
import { fromItem, type RawMessage, type Shown } from "../../../static/src/app/store/path.ts";
import { TurnStream } from "../../../static/src/app/store/stream.ts";
import type { TranscriptApi } from "../../../static/src/app/store/transcript.ts";
import type { Part } from "../../../static/src/app/lib/parts.ts";
import type { Instance, Message } from "../../../static/src/app/store/types.ts";

// Numbers and dates are written as this browser's language has it: whatever the machine's is.
Object.defineProperty(navigator, "language", { value: "en-US", configurable: true });

export function same(found: unknown, wanted: unknown): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${a} is not ${b}`);
}

export const pause = (ms: number): Promise<void> => new Promise((go) => setTimeout(go, ms));

/** Wait for something that is made true elsewhere. */
export async function until(isTrue: () => unknown): Promise<void> {
  for (let count = 0; count < 500 && !isTrue(); count += 1) await pause(10);
  if (!isTrue()) throw new Error(`not within five seconds: ${isTrue}`);
}

/** A message as the API gives it: it says its id. */
export const item = (id: string, more: Partial<RawMessage> = {}): RawMessage => ({
  id,
  role: "user",
  parts: [{ type: "text", text: id }],
  ...more,
});

export const message = (id: string, more: Partial<Message> = {}): Message => ({ ...fromItem(item(id)), ...more });

export const page = (raw: object): RawPage => raw as RawPage;

/** A list with older pages. */
export const listed = (...ids: string[]): Shown => ({
  messages: ids.map((id) => message(id)),
  queued: [],
  hasMore: true,
  leafId: null,
});

export const idsOf = ({ messages }: { messages: readonly { id: string }[] }): string[] => messages.map(({ id }) => id);

export const instance = (more: Partial<Instance> = {}): Instance => ({
  ...fromInstance({ id: "i", agent: "Assistant", name: "n" }),
  ...more,
});

/** What the outbox is given: a message with its request. */
export const kept = (id: number): KeptEntry => ({
  requestId: `req_${id}`,
  body: { text: id },
  shown: message(`msg_${id}`, { parts: [] }),
});

/** A turn with an answer of these parts. */
export function answering(parts: Part[], more: Partial<TurnStream> = {}): TurnStream {
  const stream = new TurnStream("r");
  return Object.assign(stream, { message: message("a", { role: "assistant", parts }) }, more);
}

/** An API of which only these operations are asked. */
export const apiOf = (operations: object): TranscriptApi => operations as TranscriptApi;

/** A line whose frames the test gives. */
export class TestLine extends Emitter<SocketEvents> {
  state: LineState = "open";
  sent: ClientFrame[] = [];
  isClosed = false;
  connect(): void {}
  send(frame: ClientFrame): boolean {
    this.sent.push(frame);
    return true;
  }
  close(): void {
    this.isClosed = true;
  }
  hear(frame: ServerFrame): void {
    this.emit("frame", frame);
  }
  chunk(chunk: Chunk, seq?: number): void {
    this.hear({ type: "cf_agent_use_chat_response", id: "r", body: JSON.stringify(chunk), done: false, seq });
  }
}

/** Forbid changes of a value and of all within. */
export function frozen<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  Object.values(value).forEach(frozen);
  return value;
}
