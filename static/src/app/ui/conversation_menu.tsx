// What one can do with a whole conversation, from its row or from its head: the same menu.

import { pending } from "../lib/busy.ts";
import { t } from "../lib/i18n.ts";
import type { App } from "../store/app.ts";
import { isOwn } from "../store/instances.ts";
import type { Instance, Message } from "../store/types.ts";
import { printShown } from "./keys.ts";
import type { MenuEntry } from "./popover.tsx";

/** The entries for a conversation. `find`: opens the search within it, where it is the open one. */
export function conversationEntries(app: App, item: Instance, find?: () => void): MenuEntry[] {
  if (!isOwn(item)) return memberEntries(app, item, find);
  if (app.threads.desk && item.parentId === app.threads.rootId) {
    return [...app.threads.desk.entries(item, find), ...exportEntries(app, item)];
  }
  const { conversations } = app;
  const entries: MenuEntry[] = [
    { icon: "edit", label: t("common.rename"), run: () => conversations.rename(item) },
  ];
  if (item.isTemporary) entries.push({ icon: "save", label: t("temporary.keep"), run: () => keep(app, item) });
  else if (!item.isArchived) {
    const label = t(item.isPinned ? "list.unpin" : "list.pin");
    entries.push({ icon: "pin", label, run: () => conversations.setPinned(item, !item.isPinned) });
  }
  if (!item.parentId) {
    const move = async () => void (await pending(import("../later/views.ts"))).askMove(app, [item]);
    entries.push({ icon: "folder", label: t("list.move"), run: move });
  }
  if (find) entries.push(...openEntries(app, item, find));
  if (item.sessionId && !item.parentId && !item.isTemporary) {
    if (find) entries.push({ icon: "people", label: t("conversation.share"), run: () => app.share() });
    entries.push({ icon: "globe", label: t("conversation.share-link"), run: () => void shareLinks(app, item) });
  }
  entries.push(...exportEntries(app, item));
  if (!item.isTemporary) {
    entries.push({
      icon: "box",
      label: t(item.isArchived ? "common.restore" : "list.archive"),
      run: () => conversations.setArchived(item, !item.isArchived),
      isApart: true,
    });
  }
  entries.push({ icon: "bin", label: t("common.delete"), run: () => conversations.remove(item), isDanger: true });
  return entries;
}

/** Make an ordinary one of a temporary conversation. */
export const keep = (app: App, item: Instance): void =>
  void pending(import("../later/views.ts")).then(({ keepTemporary }) => keepTemporary(app, item));

/** Those of a member: the conversation is another person's. */
function memberEntries(app: App, item: Instance, find?: () => void): MenuEntry[] {
  const leave = () => app.conversations.leave(item);
  const entries: MenuEntry[] = find ? openEntries(app, item, find) : [];
  entries.push(...exportEntries(app, item));
  return [...entries, { icon: "out", label: t("conversation.leave"), run: leave, isDanger: true }];
}

/** Make links for readers, and take them back. A new one ends at `message`, else at the end of what is shown. */
export async function shareLinks({ api, dialogs }: App, instance: Instance, message?: Message): Promise<void> {
  await dialogs.ask("share-links", { api, instance, message });
}

/** What one can do with the conversation that is open. */
function openEntries(app: App, { id }: Instance, find: () => void): MenuEntry[] {
  const outline = async () => {
    const current = app.place.reveal?.messageId ?? "";
    const messageId = await app.dialogs.ask("outline", { api: app.api, instanceId: id, current });
    if (messageId) await app.place.open(id, { place: { messageId, sessionId: "" } });
  };
  const branches = async () => (await pending(import("../later/views.ts"))).showBranches(app, id);
  return [
    { icon: "search", label: t("conversation.find"), run: find },
    { icon: "book", label: t("conversation.outline"), run: () => void outline() },
    { icon: "fork", label: t("conversation.branches"), run: () => void branches() },
    { icon: "print", label: t("conversation.print"), run: () => void printShown(app) },
  ];
}

function exportEntries(app: App, item: Instance): MenuEntry[] {
  if (!item.sessionId) return [];
  const run = () => void exportConversations(app, item.sessionId!, item.title || t("conversation.new"));
  return [{ icon: "save", label: t("list.export"), run }];
}

/** Ask for a format, and save a history in it; "" saves all conversations. */
export async function exportConversations({ api, dialogs }: App, sessionId = "", title = ""): Promise<void> {
  await dialogs.ask("export-conversations", { api, sessionId, title });
}
