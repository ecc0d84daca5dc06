// How the page looks, over all tabs of the browser: theme, size of text, time zone. Cookies keep it; other tabs learn of it at once.

import { chooseZone } from "./own_zone.ts";
import { recall, remember } from "./storage.ts";
import { setTheme, showTheme, type Theme } from "./theme.ts";

export type TextSize = "" | "small" | "large" | "larger";
export const TEXT_SIZES: readonly TextSize[] = ["small", "", "large", "larger"];

interface Look {
  theme?: Theme;
  textSize?: TextSize;
  zone?: string;
}

/** The size of text that is on. */
export const currentTextSize = (): TextSize => (document.documentElement.dataset.text ?? "") as TextSize;

/** Show it here and in the other tabs. */
export function changeLook(look: Look): void {
  if (look.theme !== undefined) setTheme(look.theme);
  show(look);
  remember("look", { ...look, at: Date.now() }); // a change, each time
}

function show({ theme, textSize, zone }: Look): void {
  if (theme !== undefined) showTheme(theme);
  if (zone !== undefined) chooseZone(zone);
  if (textSize === "") delete document.documentElement.dataset.text;
  else if (textSize !== undefined) document.documentElement.dataset.text = textSize;
}

addEventListener("storage", (event) => {
  if (event.key === "think.look" && event.newValue) show(recall<Look>("look") ?? {});
});
