// In the title of the window and on its icon: that something needs the person, in whatever conversation. It is gone when it is
// seen.

import { useEffect, useLayoutEffect } from "preact/hooks";
import { follow } from "../lib/store.ts";
import { markSeen, needsOf } from "../store/needs.ts";
import { useApp } from "./context.ts";

/** Draws nothing inside the page. */
export function Badge() {
  const app = useApp();
  follow(app.place);
  follow(app.approvals);
  follow(app.list);
  follow(app.conversation); // its title
  const count = needsOf(app);
  const title = count ? `(${count}) ${app.place.documentTitle}` : app.place.documentTitle;
  useLayoutEffect(() => { // before the effects of what is inside: they may give the focus to what shows by now
    document.title = title;
  }, [title]);
  useEffect(() => showOnIcon(count), [count]);
  useEffect(() => {
    const look = () => markSeen(app);
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  return null;
}

function showOnIcon(count: number): void {
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  const { plain = link?.href, waiting } = link?.dataset ?? {};
  if (link && plain && waiting) {
    link.dataset.plain = plain;
    link.href = count ? waiting : plain;
  }
  // Of an installed page: on its symbol in the system.
  navigator.setAppBadge?.(count).catch(() => {}); // a browser may have it and refuse it
}
