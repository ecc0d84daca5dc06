// What the views inside a message need of the page. One object for a whole conversation, so that it never makes a view differ.

import type { App } from "../store/app.ts";
import type { Conversation } from "../store/conversation.ts";
import type { OpenCalls } from "../store/open_calls.ts";
import type { Reader } from "./reader.ts";

export interface Parts {
  app: App;
  conversation: Conversation;
  reader: Reader;
  openCalls: OpenCalls;
}
