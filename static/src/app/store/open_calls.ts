// What the server knows of the calls that wait in one conversation and no chunk carries: how long they may wait, and which
// arguments may be changed to what. All are read at once, however many ask.

import type { Api } from "../net/api.ts";
import { Store } from "../lib/store.ts";
import type { Conversation } from "./conversation.ts";
import type { JsonObject } from "./types.ts";

/** A call as the API gives it. */
export interface OpenCall {
  call_id: string;
  tool_name: string;
  expires_at: string | null;
  input_schema: JsonObject | null;
  may_edit: boolean | string[];
}

export class OpenCalls extends Store {
  #known: ReadonlyMap<string, OpenCall> = new Map();
  #asked = new Set<string>();
  #isReading = false;
  #api: Api;
  #conversation: Conversation;

  constructor(api: Api, conversation: Conversation) {
    super();
    this.#api = api;
    this.#conversation = conversation;
  }

  /** What is known of a call; nothing until it was read. */
  of(callId: string): OpenCall | undefined {
    return this.#known.get(callId);
  }

  /** Have a call read, once; it is asked again where that did not work and the call is shown anew. */
  want(callId: string): void {
    if (this.#asked.has(callId)) return;
    this.#asked.add(callId);
    if (this.#isReading) return;
    this.#isReading = true;
    queueMicrotask(() => this.#read());
  }

  async #read(): Promise<void> {
    const asked = [...this.#asked];
    try {
      const calls = await this.#api.openCalls(this.#conversation.instance.id) as unknown as OpenCall[];
      this.#known = new Map(calls.map((call) => [call.call_id, call]));
      this.changed();
    } catch {
      asked.forEach((id) => this.#asked.delete(id)); // the question can be answered without it
    }
    this.#isReading = false;
  }
}
