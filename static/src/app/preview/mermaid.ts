// Entry of the frames for diagrams. The build puts the library before it (`FRAMES` of `static/build.py`), and nowhere else.

import { stage } from "./stage.ts";

interface Library {
  initialize(options: Record<string, unknown>): void;
  render(id: string, text: string): Promise<{ svg: string }>;
}

let drawn = 0;

stage(async (text) => {
  const library = (globalThis as unknown as { mermaid: Library }).mermaid;
  const { theme } = document.documentElement.dataset;
  const isDark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  library.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    theme: isDark ? "dark" : "neutral",
    fontFamily: "system-ui, sans-serif",
    themeCSS: ".node * { filter: none !important; }", // on dark its shadows are a glow
    suppressErrorRendering: true,
  });
  const { svg } = await library.render(`diagram-${++drawn}`, text);
  const parsed = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
  return parsed ? [document.importNode(parsed, true)] : [];
});
