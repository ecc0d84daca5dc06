// What rendered text gets after the sanitiser: colours of code, formulas, boxes of tasks, and a look at how wide tables are.
// Colours and formulas need libraries that come on demand: what waits for them is dressed when they are there.

import { pending } from "./busy.ts";
import { colourFigure, languageIn } from "./code.ts";
import { loadHighlighter, needsHighlighter } from "./highlight.ts";
import { t } from "./i18n.ts";
import { loadMath, needsMath, showFormula } from "./math.ts";
import { keepReading, scrollerOf } from "./scroll.ts";
import { watchWidth } from "./tables.ts";

const SLICE_MS = 12;
const waiting = new Set<Element>();
let isLoading = false;

/** Dress newly rendered elements, and later what they wait for. */
export function dress(elements: readonly Element[]): void {
  for (const element of elements) {
    within(element, ".task-mark").forEach(putTaskBox);
    within(element, ".table, .math").forEach(watchWidth);
    within(element, ".math").forEach(showFormula);
    within(element, "figure.code code").forEach(colourFigure);
    if (isWaiting(element)) waiting.add(element);
  }
  if (waiting.size) pending(load());
}

/** Tell that a root now holds text that was rendered before: what is still plain in it is dressed with the rest. */
export function dressLater(root: Element): void {
  if (waiting.size) waiting.add(root);
}

const within = (element: Element, selector: string): Element[] => [
  ...(element.matches(selector) ? [element] : []),
  ...element.querySelectorAll(selector),
];

const formulasIn = (element: Element) => within(element, ".math:not(.is-shown, .is-wrong)");
const codesIn = (element: Element) =>
  within(element, "figure.code code").filter((code) => !code.firstElementChild && languageIn(code) !== "");

const isWaiting = (element: Element): boolean =>
  (needsMath() && formulasIn(element).length > 0) ||
  codesIn(element).some((code) => needsHighlighter(languageIn(code), code.textContent ?? ""));

async function load(): Promise<void> {
  if (isLoading) return;
  isLoading = true;
  const elements = [...waiting];
  const loads: Promise<boolean>[] = [];
  if (elements.some((element) => formulasIn(element).length)) loads.push(loadMath());
  if (elements.some((element) => codesIn(element).length)) loads.push(loadHighlighter());
  const isThere = (await Promise.all(loads)).every(Boolean);
  isLoading = false;
  await dressWaiting();
  if (isThere && [...waiting].some(isWaiting)) load(); // another library is needed by now
  else waiting.clear();
}

/** In slices, so that a long conversation does not hold the page up; nothing that is read moves. */
async function dressWaiting(): Promise<void> {
  const roots = [...waiting];
  const open = roots.flatMap((root) => [
    ...formulasIn(root).map((element) => ({ element, change: () => showFormula(element) })),
    ...codesIn(root).map((element) => ({ element, change: () => colourFigure(element) })),
  ]);
  while (open.length) {
    const until = performance.now() + SLICE_MS;
    const shown = open.find(({ element }) => element.isConnected)?.element;
    keepReading(shown ? scrollerOf(shown) : null, () => {
      do open.shift()?.change(); while (open.length && performance.now() < until);
    });
    if (open.length) await new Promise((go) => setTimeout(go));
  }
}

function putTaskBox(mark: Element): void {
  const isDone = mark.classList.contains("is-done");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.disabled = true;
  box.toggleAttribute("checked", isDone); // the attribute: copies of the node are alike
  box.setAttribute("aria-label", isDone ? t("message.task-done") : t("message.task-open"));
  mark.replaceWith(box);
}
