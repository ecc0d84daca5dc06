// Which texts can be shown as what they describe: by the language of a piece of code, or by the name of a file. Pure.

export type PreviewKind = "html" | "svg" | "mermaid" | "markdown" | "csv" | "chart";

const LANGUAGES: Readonly<Record<string, PreviewKind>> = {
  html: "html",
  htm: "html",
  svg: "svg",
  mermaid: "mermaid",
  mmd: "mermaid",
  markdown: "markdown",
  md: "markdown",
  csv: "csv",
  tsv: "csv",
  chart: "chart",
  "vega-lite": "chart",
  vegalite: "chart",
};
const CHARTS = /\.(chart|vl|vega-lite)\.json$/i;

/** Null for code that is nothing but code. */
export const kindOfLanguage = (language: string): PreviewKind | null =>
  Object.hasOwn(LANGUAGES, language) ? LANGUAGES[language] : null;

/** Null for files that are shown as text alone. */
export function kindOfFile(name: string): PreviewKind | null {
  if (CHARTS.test(name)) return "chart";
  return kindOfLanguage(/\.([^./]+)$/.exec(name)?.[1].toLowerCase() ?? "");
}
