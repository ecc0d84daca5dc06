// Questions to the person, in the browser's own dialog element: it traps focus, closes on Esc and gives focus back.

import { h } from "./dom.js";

function ask(title, body, confirmLabel, { isDanger = false } = {}) {
  return new Promise((resolve) => {
    const ok = h("button", { class: isDanger ? "button is-danger" : "button is-primary", value: "ok", text: confirmLabel });
    const cancel = h("button", { type: "button", class: "button", text: "Cancel", onclick: () => dialog.close() });
    const form = h("form", { method: "dialog" }, h("h2", { id: "dialog-title", text: title }), body, h("p", { class: "dialog-actions" }, cancel, ok));
    const dialog = h("dialog", { class: "dialog", "aria-labelledby": "dialog-title" }, form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "ok");
    });
    document.body.append(dialog);
    dialog.showModal();
    (isDanger ? cancel : form.querySelector("input") ?? ok).focus();
  });
}

export const confirmDelete = (title) =>
  ask("Delete this conversation?", h("p", { text: `“${title}” and everything in it will be gone. This cannot be undone.` }), "Delete", { isDanger: true });

export const confirmUndo = (messages) =>
  ask("Undo this summary?", h("p", { text: `The model reads the ${messages} messages themselves again. That takes more room, and the text of the summary is no longer shown here.` }), "Undo", { isDanger: true });

/** Resolves to {isChecked} when it is to be deleted, else to null. `option`: something that may be ticked. */
export async function confirmForget(title, text, option = "") {
  const box = h("input", { type: "checkbox", class: "tick" });
  const body = h("div", {}, h("p", { text }), option ? h("label", { class: "ticked" }, box, h("span", { text: option })) : null);
  return (await ask(title, body, "Delete", { isDanger: true })) ? { isChecked: box.checked } : null;
}

/** Ask for a new title; null when it was not given. */
export async function askTitle(current) {
  const input = h("input", { type: "text", name: "title", maxlength: 100, required: true, "aria-label": "Title", autocomplete: "off" });
  input.value = current;
  const isDone = ask("Rename conversation", h("p", {}, input), "Rename");
  input.select();
  return (await isDone) && input.value.trim() ? input.value.trim() : null;
}

/** A short notice at the foot of the page, announced, gone by itself. */
export function notice(text) {
  const region = document.getElementById("notices");
  const line = h("p", { class: "notice", text });
  region.append(line);
  setTimeout(() => line.remove(), 6000);
}
