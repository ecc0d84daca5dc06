// The inside of a preview's frame: takes what is to be shown from the page around it, and says when it stands there. The origin is
// opaque, and no other script runs here.

import { useCatalogue } from "../lib/i18n.ts";

/** What the page sends. `texts`: of the page's language, by key. */
export interface Shown {
  text: string;
  theme: string;
  language: string;
  direction: string;
  texts: Readonly<Record<string, string>>;
}

/** What a frame says. `scroll` and `drawn` come from documents of strangers too. */
export type Said =
  | { preview: "ready" | "drawn" }
  | { preview: "scroll"; x: number; y: number }
  | { preview: "failed"; reason: string }
  | { preview: "link"; url: string };

const tell = (said: Said): void => parent.postMessage(said, "*");

/** Draw each text that comes. `draw` returns what stands in the page then; what it throws is said. */
export function stage(draw: (text: string) => readonly Node[] | Promise<readonly Node[]>): void {
  let asked = 0;
  let last: Shown | null = null;
  addEventListener("message", (event) => {
    if (event.source === parent && event.origin === location.origin) show(last = event.data as Shown);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => last && show(last));
  async function show({ text, theme, language, direction, texts }: Shown): Promise<void> {
    const mine = ++asked;
    const root = document.documentElement;
    root.lang = language;
    root.dir = direction;
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    useCatalogue(language, texts);
    try {
      const nodes = await draw(text);
      if (mine !== asked) return;
      const [x, y] = [scrollX, scrollY];
      document.body.replaceChildren(...nodes);
      scrollTo(x, y);
      tell({ preview: "drawn" });
    } catch (error) {
      if (mine === asked) tell({ preview: "failed", reason: error instanceof Error ? error.message : String(error) });
    }
  }
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (!link || !event.isTrusted) return;
    event.preventDefault(); // this frame may open nothing; the page around it may
    const url = link.getAttribute("href") ?? "";
    if (/^https?:/i.test(url)) tell({ preview: "link", url });
  });
  tell({ preview: "ready" });
}
