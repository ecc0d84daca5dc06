// Printing a conversation whole: what is above the loaded messages is loaded first, up to a number of them.

import { begin } from "../lib/busy.ts";
import { dressAll } from "../lib/dress.ts";
import { t } from "../lib/i18n.ts";
import type { App } from "./app.ts";

const MOST = 550; // messages: a page further, and the list forgets some at its other end
const DRAWN_MS = 400;

/** Load what is missing, and open the browser's dialog. What does not come is said in the print. */
export async function printConversation(app: App): Promise<void> {
  const { conversation, notices } = app;
  if (conversation.hasMore) notices.show(t("conversation.print-loading"));
  const end = begin();
  try {
    while (conversation.hasMore && conversation.messages.length < MOST) {
      const known = conversation.messages.length;
      await conversation.loadOlder();
      if (conversation.messages.length === known) break; // another place by now
    }
  } catch (error) {
    notices.fail(error); // what is there is printed all the same
  } finally {
    end();
  }
  await dressAll();
  await new Promise((go) => setTimeout(go, DRAWN_MS)); // what has come is drawn
  print();
}
