// Copying, and the buttons inside rendered text: found by what they say they do, not by listeners of their own.

import { icon } from "./dom.js";
import { notice } from "./dialogs.js";

/** Copy a text; `button` says for a moment that it was done. Returns whether it was. */
export async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    notice("The browser does not allow copying here.");
    return false;
  }
  flash(button, "Copied");
  return true;
}

/** A click somewhere in the messages. `copy(text, button)` copies. */
export function onContentClick(event, copy) {
  const button = event.target.closest("[data-action]");
  const figure = button?.closest("figure.code");
  if (!figure) return;
  if (button.dataset.action === "copy-code") copy(figure.querySelector("code").textContent.replace(/\n$/, ""), button);
  if (button.dataset.action === "wrap-code") {
    const isWrapped = figure.toggleAttribute("data-keep-wrap");
    button.setAttribute("aria-pressed", String(isWrapped));
  }
}

function flash(button, text) {
  if (!button || button.dataset.flash) return;
  const old = [...button.childNodes];
  button.dataset.flash = "1";
  const isIcon = button.classList.contains("icon-button");
  button.replaceChildren(isIcon ? icon("check") : text);
  if (isIcon) button.setAttribute("data-note", text);
  setTimeout(() => {
    delete button.dataset.flash;
    button.removeAttribute("data-note");
    button.replaceChildren(...old);
  }, 1400);
}
