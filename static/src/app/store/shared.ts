// The conversation of a link for readers: what the document has brought along, and nothing else. It is read from its beginning.

import type { App } from "./app.ts";
import { Conversation } from "./conversation.ts";
import { fromInstance, pathOf } from "./instances.ts";
import { Outbox } from "./outbox.ts";
import type { RawPage } from "../net/types.ts";
import { Summaries } from "./summaries.ts";
import type { Instance } from "./types.ts";

class SharedConversation extends Conversation {
  constructor(app: App, instance: Instance, page: RawPage | null) {
    super(app.api, instance, page);
    this.put({ place: { sessionId: null, leafId: null, isOther: false, isForeign: false } }); // its end is not followed
  }
}

/** Show the conversation of a link, without a line, a list or a field. */
export function showShared(app: App): void {
  const { instance, messages } = app.boot;
  const shown = { ...fromInstance(instance!), isReadOnly: true };
  app.place.conversation = new SharedConversation(app, shown, messages);
  app.place.outbox = new Outbox(`shared/${pathOf(shown)}`, () => Promise.resolve()); // stays empty
  app.place.summaries = new Summaries(app.api, app.conversation, () => {});
}
