// Where the focus goes when what had it is gone.

import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Give the focus to an element when `isAway` ends: the button that opened an editor, once it is closed. */
export function useReturnFocus<E extends HTMLElement>(isAway: boolean): RefObject<E | null> {
  const element = useRef<E>(null);
  const wasAway = useRef(false);
  useEffect(() => {
    if (wasAway.current && !isAway) element.current?.focus({ preventScroll: true });
    wasAway.current = isAway;
  }, [isAway]);
  return element;
}

/** Give the focus to what is left when the control that had it has gone. */
export function keepFocusIn(element: HTMLElement | null): void {
  if (document.activeElement === document.body) element?.focus({ preventScroll: true });
}
