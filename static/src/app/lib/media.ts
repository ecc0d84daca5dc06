// What the screen is like, for views that are other views on other screens.

import { type ReadonlySignal, signal } from "@preact/signals-core";

function matching(query: string): ReadonlySignal<boolean> {
  const list = matchMedia(query);
  const matches = signal(list.matches);
  list.addEventListener("change", () => (matches.value = list.matches));
  return matches;
}

/** There is no room for a row of symbols, or no pointer that could ask what one means. */
export const isCompact = matching("(max-width: 759px), (pointer: coarse)");
