// A text that a person changes in its place: field, save, cancel, and why it was refused.

import { h, setText } from "./dom.js";

let made = 0;

/**
 * `save(text, name)` resolves to what went wrong, empty when it is stored. `done()` when it is stored or given up.
 * `named`: ask for a name too, under this label.
 */
export function editor({ label, text, save, done, named = "" }) {
  const id = `editor-${(made += 1)}`;
  const field = h("textarea", {
    id,
    class: "field",
    rows: Math.min(14, Math.max(4, text.split("\n").length + 1)),
    dir: "auto",
    value: text,
  });
  const name = h("input", {
    id: `${id}-name`,
    class: "field",
    type: "text",
    required: true,
    maxlength: 200,
    pattern: "[^\\/]+",
    title: "Anything without a slash",
  });
  const nameRow = named ? [h("label", { for: name.id, class: "field-label", text: named }), name] : [];
  const note = h("p", { class: "is-error", role: "alert" });
  const submit = h("button", { type: "submit", class: "button is-primary", text: "Save" });
  const cancel = h("button", { type: "button", class: "button", text: "Cancel", onclick: done });
  const form = h(
    "form",
    { class: "editor" },
    ...nameRow,
    h("label", { for: id, class: "field-label", text: label }),
    field,
    note,
    h("p", { class: "panel-actions" }, submit, cancel),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    const wrong = await save(field.value, name.value.trim());
    submit.disabled = false;
    setText(note, wrong);
    if (!wrong) done();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault(); // it ends the edit, nothing around it
    event.stopPropagation();
    done();
  });
  return form;
}
