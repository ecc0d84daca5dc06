// Tables and formulas that may be wider than their place; copying a table, and seeing all of it.

import { t } from "./i18n.ts";

// Before anything is painted, so that the buttons of a wide table do not push the text down afterwards.
const sizes = typeof ResizeObserver === "undefined" ? null : new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const scroll = target.closest(".table-scroll") ?? target;
    note(scroll, scroll.scrollWidth > scroll.clientWidth + 1);
  }
});

/** Watch how wide a rendered table or formula is: while it has to scroll, `data-keep-wide` is on its box, and keys can scroll it. */
export function watchWidth(box: Element): void {
  const scroll = box.matches(".table") ? box.querySelector(".table-scroll") : box;
  if (!scroll) return;
  sizes?.observe(scroll);
  if (scroll !== box && scroll.firstElementChild) sizes?.observe(scroll.firstElementChild); // a formula may widen it later
}

function note(scroll: Element, isWide: boolean): void {
  const box = scroll.closest(".table") ?? scroll;
  if (box.hasAttribute("data-keep-wide") === isWide) return;
  box.toggleAttribute("data-keep-wide", isWide);
  if (box !== scroll) return; // a table is a named region already
  const names = { tabindex: "0", role: "group", "aria-label": t("message.formula") };
  for (const [name, value] of Object.entries(names)) {
    if (isWide) scroll.setAttribute(name, value);
    else scroll.removeAttribute(name);
  }
}

/** The cells of a table as lines with tabs between them, as spreadsheets take them. */
export function tableText(table: HTMLTableElement): string {
  const cell = (element: Element) => (element.textContent ?? "").replace(/\s+/g, " ").trim();
  return [...table.rows].map((row) => [...row.cells].map(cell).join("\t")).join("\n");
}

/** Show a table over the whole page. Esc, the button or a click beside it closes it; the focus goes back to where it was. */
export function expandTable(table: HTMLTableElement): void {
  const dialog = document.createElement("dialog");
  dialog.className = "table-dialog md";
  dialog.setAttribute("aria-label", t("message.table"));
  const close = document.createElement("button");
  close.type = "button";
  close.className = "button";
  close.textContent = t("message.close-table");
  const scroll = document.createElement("div");
  scroll.className = "table-scroll";
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", t("message.table"));
  scroll.dir = getComputedStyle(table).direction;
  scroll.append(table.cloneNode(true));
  dialog.append(close, scroll);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
