// Answers to calls that wait for a person: allow, decline, skip, and allow with other arguments.

import { t } from "../lib/i18n.ts";
import type { Api } from "../net/api.ts";
import { allowable, openQuestions } from "./runs.ts";
import type { Conversation } from "./conversation.ts";
import type { JsonObject, ToolPart } from "./types.ts";

/** A decision: `editedInput` where the person has changed the arguments, `answers` where it chose. */
export interface Decision {
  approved: boolean;
  editedInput?: JsonObject;
  answers?: string[][];
  /** Add the rules that the question offers, for this conversation or for all. */
  always?: "conversation" | "owner";
  reason?: string;
  /** Decline all that waits in the conversation. */
  deniesAll?: boolean;
}

export class Deciding {
  #api: Api;
  #show: (text: string) => void;

  /** `show` tells the person. */
  constructor(api: Api, show: (text: string) => void) {
    this.#api = api;
    this.#show = show;
  }

  /** Bound to the arguments that are shown. Resolves to whether the decision is stored. */
  async decide(instanceId: string, callId: string, input: unknown, decision: Decision): Promise<boolean> {
    const { approved, editedInput, answers, always, reason, deniesAll } = decision;
    const given = { edited_input: editedInput, answers, always, reason, deny_all: deniesAll };
    const body = {
      approved,
      input,
      ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    };
    return await this.#answered(this.#api.decideCall(instanceId, callId, body));
  }

  /** Decide a call of the shown conversation. */
  async decideIn(
    conversation: Conversation,
    part: Pick<ToolPart, "toolCallId" | "input">,
    decision: Decision,
  ): Promise<boolean> {
    const isStored = await this.decide(conversation.instance.id, part.toolCallId, part.input, decision);
    conversation.refreshSoon();
    return isStored;
  }

  /** Decide all that wait in the last answer, until one does not work. Choices are not made in a person's place. */
  async decideAll(conversation: Conversation, approved: boolean): Promise<void> {
    const open = openQuestions(conversation);
    for (const part of approved ? allowable(open) : open) {
      if (!(await this.decideIn(conversation, part, { approved }))) return;
    }
  }

  /** Go on without the result of a call that another client was to give. */
  async skip(conversation: Conversation, part: ToolPart): Promise<boolean> {
    const request = this.#api.answerCall(conversation.instance.id, part.toolCallId, { error_text: "" });
    const isStored = await this.#answered(request);
    conversation.refreshSoon();
    return isStored;
  }

  async #answered(request: Promise<unknown>): Promise<boolean> {
    try {
      const { accepted, not_continued: refusal } = await request as { accepted?: boolean; not_continued?: string };
      if (accepted === false) this.#show(t("tools.decided-before"));
      else if (refusal) this.#show(refusal);
      return accepted !== false;
    } catch (error) {
      this.#show((error as Error).message); // another window may have decided
      return false;
    }
  }
}
