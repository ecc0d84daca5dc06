// Copying, and the buttons inside rendered text: found by what they say they do, not by listeners of their own.

import { t } from "./i18n.ts";
import { bringIntoSight } from "./scroll.ts";
import { expandTable, tableText } from "./tables.ts";

const FLASH_MS = 1_400;

/** Copy a text. Returns whether the browser allowed it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** What the buttons need of the page: `copy` copies and tells (`tellCopied` is for its button), `preview` shows a figure's code. */
export interface ContentVerbs {
  copy: (text: string, button: HTMLElement) => void;
  preview: (button: HTMLElement) => void;
}

/** A click somewhere in rendered text. */
export function onContentClick(event: Event, verbs: ContentVerbs): void {
  const button = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-action]") : null;
  if (button) ACTIONS[button.dataset.action ?? ""]?.(button, verbs);
}

type Action = (button: HTMLElement, verbs: ContentVerbs) => void;

const ACTIONS: Record<string, Action> = {
  "copy-code": (button, { copy }) => {
    const code = button.closest("figure.code")?.querySelector("code")?.textContent;
    if (code != null) copy(code.replace(/\n$/, ""), button);
  },
  "preview-code": (button, { preview }) => preview(button),
  "wrap-code": (button) => {
    const isWrapped = button.closest("figure.code")?.toggleAttribute("data-keep-wrap") ?? false;
    button.setAttribute("aria-pressed", String(isWrapped));
  },
  "copy-table": (button, { copy }) => {
    const table = button.closest(".table")?.querySelector("table");
    if (table) copy(tableText(table), button);
  },
  "expand-table": (button) => {
    const table = button.closest(".table")?.querySelector("table");
    if (table) expandTable(table);
  },
  "to-note": (button) => {
    const root = button.closest(".md");
    root?.querySelectorAll("[data-keep-came]").forEach((other) => other.removeAttribute("data-keep-came"));
    button.setAttribute("data-keep-came", "");
    goTo(root?.querySelector<HTMLElement>(`aside.note[data-note="${button.dataset.note}"]`));
  },
  "from-note": (button) => {
    const root = button.closest(".md");
    const references = `.note-ref[data-note="${button.dataset.note}"]`;
    goTo(
      root?.querySelector<HTMLElement>(`${references}[data-keep-came]`) ?? root?.querySelector<HTMLElement>(references),
    );
  },
};

/** Go to an element of the same text: it gets the focus, and only the list of messages scrolls. */
function goTo(element: HTMLElement | null | undefined): void {
  if (!element) return;
  element.focus({ preventScroll: true });
  bringIntoSight(element);
}

/** Show on a button of rendered text, for a moment, that it was done. */
export function tellCopied(button: HTMLElement): void {
  if (button.dataset.flash) return;
  const old = [...button.childNodes];
  button.dataset.flash = "1";
  button.replaceChildren(t("message.copied"));
  setTimeout(() => {
    delete button.dataset.flash;
    button.replaceChildren(...old);
  }, FLASH_MS);
}
