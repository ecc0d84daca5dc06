// What the server knows of the calls that wait in one conversation and no chunk carries: how long they may wait, which arguments
// may be changed to what, and all of a call that code makes. All are read at once, however many ask.

import type { Api } from "../net/api.ts";
import { Store } from "../lib/store.ts";
import type { Conversation } from "./conversation.ts";
import type { ChoiceQuestion, JsonObject, Offer, Risk } from "./types.ts";

/** A call as the API gives it. */
export interface OpenCall {
  call_id: string;
  tool_name: string;
  expires_at: string | null;
  input_schema: JsonObject | null;
  may_edit: boolean | string[];
  needs: "approval" | "result";
  tool_title: string;
  sentence: string;
  risk: Risk;
  because?: unknown;
  offers: Offer[];
  /** The rule that asks; empty for none. */
  rule: string;
  choices: ChoiceQuestion[];
  input: unknown;
}

export class OpenCalls extends Store {
  /** Why the last reading failed. */
  error = "";
  #known: ReadonlyMap<string, OpenCall> = new Map();
  #asked = new Set<string>();
  #isReading = false;
  #isAsked = false; // the request is under way
  #isOld = false; // what it answers with
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

  /** Calls within another one that wait for a decision, in the order in which its code made them. */
  within(callId: string): OpenCall[] {
    const ordinal = (call: OpenCall) => Number(call.call_id.slice(callId.length + 1));
    return [...this.#known.values()]
      .filter((call) => call.needs === "approval" && call.call_id.startsWith(`${callId}:`))
      .sort((one, other) => ordinal(one) - ordinal(other));
  }

  /** Read all of them anew: something has changed by now. */
  again(): void {
    if (this.#isAsked) this.#isOld = true;
    else this.#readSoon();
  }

  /** Have a call read, once; it is asked again where that did not work and the call is shown anew. */
  want(callId: string): void {
    if (this.#asked.has(callId)) return;
    this.#asked.add(callId);
    this.#readSoon();
  }

  #readSoon(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    queueMicrotask(() => this.#read());
  }

  async #read(): Promise<void> {
    const asked = [...this.#asked];
    this.#isAsked = true;
    this.#isOld = false;
    try {
      const calls = await this.#api.openCalls(this.#conversation.instance.id) as unknown as OpenCall[];
      this.#known = new Map(calls.map((call) => [call.call_id, call]));
      this.error = "";
    } catch (error) {
      asked.forEach((id) => this.#asked.delete(id)); // the model's own calls can be answered without it
      this.error = (error as Error).message;
    }
    this.changed();
    this.#isReading = this.#isAsked = false;
    if (this.#isOld) this.#readSoon();
  }
}
