// Colours for code. The highlighter is loaded with the first code of a known language; until then code is shown plain.

import { Lazy } from "./lazy.ts";
import { markupToNodes } from "./sanitise.ts";

const TOO_LONG = 60_000;
const highlighter = new Lazy(() => import("./languages.ts"));

/** The code as coloured nodes. Null: it stays plain, or `ask` is true and the highlighter is not there yet. */
function coloured(code: string, language: string): DocumentFragment | null {
  if (!language || code.length > TOO_LONG) return null;
  const markup = highlighter.value?.markupOf(code, language) ?? null;
  return markup === null ? null : markupToNodes(markup);
}

/** Show code in an element: plain at once, coloured as soon as that can be. */
export function showCode(element: Element, code: string, language: string): void {
  const nodes = coloured(code, language);
  if (nodes) return element.replaceChildren(nodes);
  element.textContent = code;
  if (!needsHighlighter(language, code)) return;
  highlighter.get().then(() => {
    if (element.textContent === code) colourIn(element, language);
  });
}

/** Whether this code waits for the highlighter. */
export function needsHighlighter(language: string, code = ""): boolean {
  return highlighter.value === null && language !== "" && language !== "text" && code.length <= TOO_LONG;
}

/** Load the highlighter. Resolves to whether it is there. */
export const loadHighlighter = async (): Promise<boolean> => (await highlighter.get()) !== null;

/** Colour code that is shown plain. Its text stays the same. */
export function colourIn(element: Element, language: string): void {
  const nodes = coloured(element.textContent ?? "", language);
  if (nodes) element.replaceChildren(nodes);
}
