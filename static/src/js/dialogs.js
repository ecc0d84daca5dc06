// Questions to the person, in the browser's own dialog element: it traps focus, closes on Esc and gives focus back.

import { h } from "./dom.js";

/** Resolves to the value of the button that was pressed ("ok"; more by `also`: [{value, label}]), "" when it was none. */
function choose(title, body, confirmLabel, { isDanger = false, isWide = false, also = [] } = {}) {
  return new Promise((resolve) => {
    const ok = h("button", {
      class: isDanger ? "button is-danger" : "button is-primary",
      value: "ok",
      text: confirmLabel,
    });
    const cancel = h("button", { type: "button", class: "button", text: "Cancel", onclick: () => dialog.close() });
    const others = also.map(({ value, label }) => h("button", { class: "button", value, text: label }));
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title", text: title }),
      body,
      h("p", { class: "dialog-actions" }, cancel, others, ok),
    );
    const dialog = h(
      "dialog",
      { class: isWide ? "dialog is-wide" : "dialog", "aria-labelledby": "dialog-title" },
      form,
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
    document.body.append(dialog);
    dialog.showModal();
    (isDanger ? cancel : form.querySelector("input, textarea, select") ?? ok).focus();
  });
}

const ask = async (...what) => (await choose(...what)) === "ok";

export const confirmDelete = (title) =>
  ask(
    "Delete this conversation?",
    h("p", { text: `“${title}” and everything in it will be gone. This cannot be undone.` }),
    "Delete",
    { isDanger: true },
  );

export const confirmSessionDelete = (name) =>
  ask(
    "Delete this history?",
    h("p", { text: `“${name}” and its messages will be gone; the other histories stay. This cannot be undone.` }),
    "Delete",
    { isDanger: true },
  );

/** Ask for another text in the place of an answer: {text, continues}, null when there is none. */
export async function askAnswer(current, { isLast }) {
  const input = h("textarea", { rows: 12, required: true, "aria-label": "Answer", dir: "auto" });
  input.value = current;
  const text = isLast
    ? "The answer as it is stays reachable as another version."
    : "Nothing is lost: the answer as it is, and all that follows it, stays reachable as another version.";
  const also = isLast ? [] : [{ value: "save", label: "Save as a version" }];
  const done = choose(
    "Edit the answer",
    h("div", {}, h("p", { class: "muted", text }), h("p", {}, input)),
    isLast ? "Save" : "Save and continue from here",
    { isWide: true, also },
  );
  input.setSelectionRange(0, 0);
  input.scrollTop = 0;
  const value = await done;
  return value && input.value.trim() ? { text: input.value.trim(), continues: value === "ok" } : null;
}

/** Ask which agent goes on with what is imported; null when none was chosen. */
export async function askAgent(agents, current) {
  const options = agents.map(({ name, title }) => h("option", { value: name, text: title || name }));
  const select = h("select", { "aria-label": "Agent" }, options);
  if (agents.some(({ name }) => name === current)) select.value = current;
  return (await ask("Which agent goes on with it?", h("p", {}, select), "Import")) ? select.value : null;
}

export const confirmUndo = (messages) =>
  ask(
    "Undo this summary?",
    h("p", {
      text:
        `The model reads the ${messages} messages themselves again. That takes more room, and the text of the summary is no longer shown here.`,
    }),
    "Undo",
    { isDanger: true },
  );

/** Resolves to {isChecked} when it is to be deleted, else to null. `option`: something that may be ticked. */
export async function confirmForget(title, text, option = "") {
  const box = h("input", { type: "checkbox", class: "tick" });
  const body = h(
    "div",
    {},
    h("p", { text }),
    option ? h("label", { class: "ticked" }, box, h("span", { text: option })) : null,
  );
  return (await ask(title, body, "Delete", { isDanger: true })) ? { isChecked: box.checked } : null;
}

/** Ask for a new title; null when it was not given. */
export async function askTitle(current, { heading = "Rename conversation", confirm = "Rename" } = {}) {
  const input = h("input", {
    type: "text",
    name: "title",
    maxlength: 100,
    required: true,
    "aria-label": "Title",
    autocomplete: "off",
  });
  input.value = current;
  const isDone = ask(heading, h("p", {}, input), confirm);
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
