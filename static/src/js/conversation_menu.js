// What one can do with a whole conversation, from its row or from its head: the same menu.

import { notice } from "./dialogs.js";
import { Menu } from "./menu.js";

export class ConversationMenu {
  /** `on`: {rename(item), remove(item), changed(raw), say(text)}. */
  constructor(api, on) {
    this.api = api;
    this.on = on;
    this.menu = new Menu("Conversation");
  }

  /** `extra`: entries that lead. */
  open(item, button, extra = []) {
    this.menu.open(button, [...extra, ...this.#entries(item)]);
  }

  #entries(item) {
    const put = (change, said) => () => this.#change(item, change, said);
    /** @type {{ icon: string, label: string, run?: () => unknown, href?: string }[]} */
    const entries = [{ icon: "edit", label: "Rename", run: () => this.on.rename(item) }];
    if (!item.isArchived) {
      entries.push({
        icon: "pin",
        label: item.isPinned ? "Unpin" : "Pin",
        run: put({ pinned: !item.isPinned }, item.isPinned ? "Unpinned." : "Pinned."),
      });
    }
    if (item.sessionId) {
      entries.push({
        icon: "save",
        label: "Export, all versions (JSON)",
        href: this.api.exportAddress(item.sessionId, "jsonl"),
      });
      entries.push({
        icon: "save",
        label: "Export to read (Markdown)",
        href: this.api.exportAddress(item.sessionId, "markdown"),
      });
    }
    entries.push({
      icon: "box",
      label: item.isArchived ? "Restore" : "Archive",
      run: put(
        { archived: !item.isArchived },
        item.isArchived ? "Restored." : "Archived. The menu beside “New” leads to it.",
      ),
    });
    entries.push({ icon: "bin", label: "Delete", run: () => this.on.remove(item) });
    return entries;
  }

  async #change(item, change, said) {
    try {
      this.on.changed(await this.api.changeInstance(item.id, change));
      if (change.archived) notice(said); // it goes out of sight; of the rest one sees that it was done
      else this.on.say(said);
    } catch (error) {
      notice(error.message);
    }
  }
}
