// The models that a site lets people choose from, by agent, and the choice that belongs to a conversation.

import type { Api, Schemas } from "../net/api.ts";
import { Store } from "../lib/store.ts";
import type { Conversation } from "./conversation.ts";
import type { RawInstance } from "../net/types.ts";
import { choiceOf, fromInstance } from "./instances.ts";
import type { Instance, ModelChoice } from "./types.ts";

/** A model as the API gives it. Prices: US dollars for a million tokens; `inputs`: files that it reads besides text. */
export type ModelFacts = Schemas["OfferedModelOut"];

export const NO_CHOICE: ModelChoice = choiceOf({});

/** What a conversation of the API says about its model. */
function chosen(raw: RawInstance): Pick<Instance, "modelChoice" | "model" | "modelNotice"> {
  const { modelChoice, model, modelNotice } = fromInstance(raw);
  return { modelChoice, model, modelNotice };
}

export class Models extends Store {
  /** Why the models could not be read; empty when they could. */
  error = "";
  /** Grows with each wish that the models are shown. */
  wishes = 0;
  /** What is done once one of them was chosen; null for nothing. */
  then: (() => unknown) | null = null;
  #wished: (() => unknown) | null = null;
  #lists = new Map<string, ModelFacts[]>();
  #reading = new Set<string>();
  #api: Api;

  constructor(api: Api) {
    super();
    this.#api = api;
  }

  /** The models for an agent; read when they are asked for the first time. */
  of(agent: string): readonly ModelFacts[] {
    if (!this.#lists.has(agent)) this.#read(agent);
    return this.#lists.get(agent) ?? [];
  }

  /** Show them, and do this when one was chosen. */
  wish(then: () => unknown): void {
    this.#wished = then;
    this.wishes += 1;
    this.changed();
  }

  /** They are shown: because of a wish, or for nothing but a choice. */
  shown(): void {
    this.then = this.#wished;
    this.#wished = null;
  }

  /** Read the models of an agent again, after an error. */
  refresh = (agent: string): Promise<void> => this.#read(agent);

  /** What is known of a model by its name. */
  find = (agent: string, name: string): ModelFacts | undefined =>
    this.of(agent).find((model) => (name ? model.name === name : model.is_default));

  /** Choose for the turns from now on. Errors: `ApiError`; the former choice stands then. */
  async choose(conversation: Conversation, choice: ModelChoice): Promise<void> {
    const isDefault = Object.values(choice).every((value) => value === null);
    const wanted = isDefault ? null : choice;
    if (!conversation.instance.id) return conversation.update({ modelChoice: wanted }); // sent when it is created
    conversation.update(chosen(await this.#api.changeInstance(conversation.instance.id, { model_choice: wanted })));
  }

  /** Read which model answers next in a conversation: lists do not say it. Nothing changes where it cannot be read. */
  async learn(conversation: Conversation): Promise<void> {
    try {
      conversation.update(chosen(await this.#api.instance(conversation.instance.id)));
    } catch {
      // The picker shows what is known without it; a choice that is refused says why.
    }
  }

  async #read(agent: string): Promise<void> {
    if (this.#reading.has(agent)) return;
    this.#reading.add(agent);
    try {
      this.#lists.set(agent, (await this.#api.models(agent)).items);
      this.error = "";
    } catch (error) {
      if (!this.#lists.has(agent)) this.#lists.set(agent, []); // not asked again with each drawing
      this.error = (error as Error).message;
    } finally {
      this.changed();
      this.#reading.delete(agent);
    }
  }
}
