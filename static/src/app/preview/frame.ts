// Entry of the frames for Markdown, tables, charts and SVG.

import { renderMarkdown } from "../lib/markdown.ts";
import { chartOf } from "./chart.ts";
import { stage } from "./stage.ts";
import { tableOf } from "./table.ts";

const DRAWN: Record<string, (text: string) => readonly Node[]> = {
  markdown: (text) => {
    const element = document.createElement("article");
    element.className = "md";
    element.append(...renderMarkdown(text));
    return [element];
  },
  csv: (text) => [tableOf(text)],
  chart: (text) => [chartOf(text)],
  svg: (text) => [pictureOf(text)],
};

/** A drawing as it is written; the policy of the frame keeps its scripts from running and its addresses from being fetched. */
function pictureOf(text: string): Node {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  const wrong = parsed.querySelector("parsererror");
  const drawing = parsed.documentElement;
  if (!wrong && drawing.localName === "svg") return document.importNode(drawing, true);
  const loose = new DOMParser().parseFromString(text, "text/html").querySelector("svg"); // without a namespace, or half written
  if (!loose) throw new Error(wrong?.textContent?.trim().split("\n")[0] ?? "no <svg> element");
  return document.importNode(loose, true);
}

stage(DRAWN[document.body?.dataset.kind ?? "markdown"]);
