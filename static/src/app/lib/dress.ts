// What rendered text gets after the sanitiser: colours of code, formulas, boxes of tasks, and a look at how wide tables are.
// Colours and formulas need libraries that come on demand: what waits for them is dressed when they are there and the page is idle,
// what is seen first.

import { pending } from "./busy.ts";
import { colourFigure, languageIn } from "./code.ts";
import { loadHighlighter, needsHighlighter } from "./highlight.ts";
import { t } from "./i18n.ts";
import { idle } from "./idle.ts";
import { loadMath, needsMath, showFormula } from "./math.ts";
import { keepReading, scrollerOf } from "./scroll.ts";
import { watchWidth } from "./tables.ts";

const waiting = new Set<Element>();
let isLoading = false;
let isHurried = false;

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
  await moment(); // what is asked for first is drawn first
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

const moment = (): Promise<number> => (isHurried ? Promise.resolve(Infinity) : idle());

interface Undressed {
  element: Element;
  change: () => void;
}

/** Dress what waits now, without pauses: for paper, say. */
export async function dressAll(): Promise<void> {
  isHurried = true;
  while (isLoading) await new Promise((go) => setTimeout(go));
  if (waiting.size) await pending(load());
  isHurried = false;
}

/** In slices while the page is idle, so that a long conversation does not hold it up; nothing that is read moves. */
async function dressWaiting(): Promise<void> {
  const open = [...waiting].flatMap((root): Undressed[] => [
    ...formulasIn(root).map((element) => ({ element, change: () => showFormula(element) })),
    ...codesIn(root).map((element) => ({ element, change: () => colourFigure(element) })),
  ]).filter(({ element }) => element.isConnected);
  const scroller = open[0] ? scrollerOf(open[0].element) : null;
  // What is passed over as they are divided may be laid out by the time it is dressed, and then moves what is read.
  for (const group of divided(open)) {
    while (group.length) {
      const until = await moment();
      keepReading(scroller, () => dressUntil(group, until));
    }
  }
}

function dressUntil(open: Undressed[], until: number): void {
  do open.shift()?.change(); while (open.length && (isHurried || performance.now() < until));
}

/** What is laid out now, the nearest to the end first, as one reads there; and the rest, which the browser passes over. */
function divided(open: readonly Undressed[]): [Undressed[], Undressed[]] {
  const [seen, unseen]: [Undressed[], Undressed[]] = [[], []];
  for (const each of [...open].reverse()) (isLaidOut(each.element) ? seen : unseen).push(each);
  return [seen, unseen];
}

const isLaidOut = (element: Element): boolean => element.checkVisibility?.({ contentVisibilityAuto: true }) ?? true;

function putTaskBox(mark: Element): void {
  const isDone = mark.classList.contains("is-done");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.disabled = true;
  box.toggleAttribute("checked", isDone); // the attribute: copies of the node are alike
  box.setAttribute("aria-label", isDone ? t("message.task-done") : t("message.task-open"));
  mark.replaceWith(box);
}
