// Answers to calls that wait for a person: allow, decline, skip.

import { notice } from "./dialogs.js";
import { openQuestions } from "../app/store/runs.ts";

export class Deciding {
  constructor(page) {
    this.page = page;
  }

  /** Bound to the arguments that are shown. Resolves to whether the decision is stored. */
  decide(part, approved) {
    this.page.composer.focus(); // the button that was pressed is about to go
    return this.#answered(
      this.page.api.decideCall(this.page.conversation.instance.id, part.toolCallId, { approved, input: part.input }),
    );
  }

  async decideAll(approved) {
    for (const part of openQuestions(this.page.conversation)) if (!(await this.decide(part, approved))) return;
  }

  skip(part) {
    return this.#answered(
      this.page.api.answerCall(this.page.conversation.instance.id, part.toolCallId, { error_text: "" }),
    );
  }

  async #answered(request) {
    const { conversation } = this.page;
    try {
      const { not_continued: refusal } = await request;
      if (refusal) notice(refusal);
      return true;
    } catch (error) {
      notice(error.message); // another window may have decided
      return false;
    } finally {
      conversation.refreshSoon();
    }
  }
}
