// Formulas as MathML. The renderer is loaded with the first formula; until then its TeX is shown. It is not trusted: no links,
// no pictures, bounded macros, sizes and results, and what it makes goes through the sanitiser.

import { t } from "./i18n.ts";
import { Lazy } from "./lazy.ts";
import { formulaToNodes } from "./sanitise.ts";

const LONG_TEX = 60; // an inline formula that may need a scroll bar
const LONGEST_TEX = 5_000;
const LONGEST_WITH_MACROS = 500;
const DEEPEST = 60;
const MOST_ELEMENTS = 4_000;
const MOST_KEPT = 400;
const DEFINES =
  /\\(?:[gex]?def|(?:re|provide)?newcommand|renewcommand|providecommand|let|futurelet|global)(?![a-zA-Z])/;
const OPTIONS = { throwOnError: true, trust: false, strict: false, maxSize: [30, 30] as [number, number] };

interface Renderer {
  render(tex: string, element: Element, options: Record<string, unknown>): void;
}

const renderer = new Lazy<Renderer>(async () => (await import("temml")).default as Renderer);
const kept = new Map<string, Node>();

/** Whether a formula would have to wait. */
export const needsMath = (): boolean => renderer.value === null;

/** Load the renderer. Resolves to whether it is there. */
export const loadMath = async (): Promise<boolean> => (await renderer.get()) !== null;

/** Put the formula in the place of its TeX, which is the element's text. What is wrong keeps its TeX and says why in its title. */
export function showFormula(element: Element): void {
  if (!renderer.value || element.classList.contains("is-shown") || element.classList.contains("is-wrong")) return;
  const tex = element.textContent ?? "";
  const isDisplay = element.classList.contains("is-display");
  const key = `${isDisplay ? "d" : "i"}${tex}`;
  try {
    const known = kept.get(key);
    const nodes = known?.cloneNode(true) ?? rendered(renderer.value, tex, isDisplay);
    if (!known) keep(key, nodes.cloneNode(true));
    element.replaceChildren(nodes);
    element.classList.add("is-shown");
    element.classList.toggle("is-long", tex.length > LONG_TEX);
  } catch (error) {
    element.classList.add("is-wrong");
    element.setAttribute("title", t("message.formula-wrong", { reason: reasonOf(error) }));
  }
}

function rendered(library: Renderer, tex: string, isDisplay: boolean): Node {
  const hasMacros = DEFINES.test(tex);
  if (tex.length > (hasMacros ? LONGEST_WITH_MACROS : LONGEST_TEX)) throw new Error(t("message.formula-too-long"));
  if (depthOf(tex) > DEEPEST) throw new Error(t("message.formula-too-long"));
  const holder = document.createElement("span");
  library.render(tex, holder, { ...OPTIONS, displayMode: isDisplay, maxExpand: hasMacros ? 50 : 1_000, macros: {} });
  if (holder.getElementsByTagName("*").length > MOST_ELEMENTS) throw new Error(t("message.formula-too-long"));
  const formula = holder.firstElementChild;
  if (!formula) throw new Error(t("message.formula-too-long"));
  const nodes = formulaToNodes(formula);
  if (!nodes.firstElementChild) throw new Error(t("message.formula-too-long"));
  return nodes;
}

/** How deep the groups of a formula are nested. */
function depthOf(tex: string): number {
  let [depth, deepest] = [0, 0];
  for (const [, opens] of tex.matchAll(/([{[(]|\\begin|\\left)|[}\])]|\\end|\\right/g)) {
    depth += opens ? 1 : -1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

function keep(key: string, nodes: Node): void {
  if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value!);
  kept.set(key, nodes);
}

/** The library marks the place under its message with combining characters; one line is enough. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split("\n")[0].replace(/ at position \d+:.*$/s, "").slice(0, 200);
}
