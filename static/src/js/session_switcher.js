// Several histories in one conversation: a quiet button in its head, and beside it the list of them.

import { askTitle, confirmSessionDelete, notice } from "./dialogs.js";
import { h, icon, iconButton, setText } from "./dom.js";
import { moveFocus, openBeside } from "./menu.js";

const nameOf = (session) => session?.name || "Untitled history";

export class SessionSwitcher {
  #sessions = [];
  #conversation = null;

  /** `button` opens the list; its text is the name of the current one. */
  constructor(button, api) {
    this.button = button;
    this.api = api;
    this.name = button.querySelector("span");
    this.list = h("ul", { class: "histories" });
    const add = h(
      "button",
      { type: "button", class: "button", onclick: () => this.#create() },
      icon("plus"),
      "New history",
    );
    this.popover = h(
      "div",
      { class: "menu", popover: "auto", role: "dialog", "aria-label": "Histories of this conversation" },
      this.list,
      add,
    );
    this.popover.addEventListener(
      "keydown",
      (event) => moveFocus(event, [...this.popover.querySelectorAll(".history-name")]),
    );
    document.querySelector("main").append(this.popover);
    button.addEventListener("click", () => this.#open());
  }

  /** Show the histories of this conversation, if its agent keeps several. */
  async show(conversation) {
    this.#conversation = conversation;
    this.popover.hidePopover();
    const { instance } = conversation;
    this.button.hidden = !(instance.id && instance.keepsSessions);
    if (this.button.hidden) return;
    setText(this.name, "Histories");
    await this.refresh();
  }

  /** Read the list again: another one may be current, here or in another window. */
  async refresh() {
    const conversation = this.#conversation;
    if (!conversation?.instance.id || !conversation.instance.keepsSessions) return;
    try {
      const sessions = await this.api.sessions(conversation.instance.id);
      if (conversation === this.#conversation) this.#draw(sessions);
    } catch (error) {
      notice(error.message);
    }
  }

  async #open() {
    await this.refresh();
    openBeside(this.popover, this.button);
    (this.list.querySelector("[aria-current]") ?? this.popover.querySelector("button")).focus();
  }

  #draw(sessions) {
    this.#sessions = sessions;
    const current = sessions.find((session) => session.is_current);
    setText(this.name, current ? nameOf(current) : "No history");
    const at = this.popover.contains(document.activeElement)
      ? document.activeElement.getAttribute("aria-label") ?? ""
      : null;
    this.list.replaceChildren(...sessions.map((session) => this.#row(session)));
    if (at !== null) {
      (this.list.querySelector(`[aria-label="${CSS.escape(at)}"]`) ?? this.popover.querySelector("button")).focus();
    }
  }

  #row(session) {
    const count = session.message_count === 1 ? "1 message" : `${session.message_count} messages`;
    const choose = h(
      "button",
      {
        type: "button",
        class: "history-name",
        "aria-current": session.is_current ? "true" : null,
        onclick: () => this.#switch(session),
      },
      h("span", { class: "history-title", dir: "auto", text: nameOf(session) }),
      h("span", { class: "muted", text: count }),
      session.summary ? h("span", { class: "history-about", dir: "auto", text: session.summary }) : null,
    );
    return h(
      "li",
      { class: "history" },
      choose,
      iconButton("edit", `Rename “${nameOf(session)}”`, () => this.#rename(session)),
      iconButton("bin", `Delete “${nameOf(session)}”`, () => this.#delete(session)),
    );
  }

  /** Do it, then show what the server has. The socket brings the messages. */
  async #do(action) {
    try {
      await action();
    } catch (error) {
      notice(error.message);
    }
    await this.refresh();
    await this.#conversation.refresh();
  }

  async #switch(session) {
    this.popover.hidePopover();
    this.button.focus();
    this.#conversation.leavePlace();
    if (!session.is_current) await this.#do(() => this.api.switchSession(this.#conversation.instance.id, session.id));
  }

  async #create() {
    this.popover.hidePopover();
    this.button.focus();
    const name = await askTitle("", { heading: "New history", confirm: "Begin" });
    if (name !== null) await this.#do(() => this.api.createSession(this.#conversation.instance.id, name));
  }

  async #rename(session) {
    const name = await askTitle(session.name, { heading: "Rename history" });
    if (name !== null) await this.#do(() => this.api.changeSession(session.id, { name }));
  }

  async #delete(session) {
    if (await confirmSessionDelete(nameOf(session))) await this.#do(() => this.api.deleteSession(session.id));
  }
}
