// A conversation whose agent is gone: it can be read, and the page does not pretend otherwise.

import { setText } from "./dom.js";

/** `elements`: {note, form, skip}; the skip link leads to what there is. */
export function showReadOnly({ note, form, skip }, { isReadOnly, agent }) {
  form.hidden = Boolean(isReadOnly);
  note.hidden = !isReadOnly;
  skip.href = isReadOnly ? "#scroller" : "#composer-input";
  setText(skip, isReadOnly ? "Skip to the messages" : "Skip to the message field");
  if (isReadOnly) {
    setText(note, `This conversation can be read and not continued: its agent, ${agent}, is not served any more.`);
  }
}
