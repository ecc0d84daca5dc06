// Copying, told where it was pressed.

import { copyText as copy, tellCopied } from "../app/lib/clipboard.ts";
import { t } from "../app/lib/i18n.ts";
import { icon } from "./dom.js";
import { notice } from "./dialogs.js";

/** Copy a text; `button` says for a moment that it was done. Returns whether it was. */
export async function copyText(text, button) {
  if (!(await copy(text))) {
    notice(t("message.copy-refused"));
    return false;
  }
  if (button?.classList.contains("icon-button")) flashIcon(button, t("message.copied"));
  else if (button) tellCopied(button);
  return true;
}

function flashIcon(button, text) {
  if (button.dataset.flash) return;
  const old = [...button.childNodes];
  button.dataset.flash = "1";
  button.replaceChildren(icon("check"));
  button.setAttribute("data-note", text);
  setTimeout(() => {
    delete button.dataset.flash;
    button.removeAttribute("data-note");
    button.replaceChildren(...old);
  }, 1400);
}
