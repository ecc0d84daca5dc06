// A temporary conversation that is kept: from then on it is as any other.

import { t } from "../lib/i18n.ts";
import type { App } from "./app.ts";
import type { Instance } from "./types.ts";

/** Keep it. What was written in it appears in the list and in searches. */
export async function keepTemporary(app: App, item: Instance): Promise<void> {
  const { api, announcer, conversations, list, notices } = app;
  try {
    await api.changeInstance(item.id, { temporary: false });
  } catch (error) {
    return notices.fail(error);
  }
  conversations.patch(item.id, { isTemporary: false });
  announcer.say(t("temporary.kept"));
  document.getElementById("scroller")?.focus({ preventScroll: true }); // the button went away
  await list.refresh();
}
