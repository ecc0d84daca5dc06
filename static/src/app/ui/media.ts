// Whether a media query holds, for views that are drawn differently then.

import { useEffect, useState } from "preact/hooks";

/** One column at a time: the list, the conversation, or the panel. */
export const NARROW = "(max-width: 759px)";

/** Whether the query holds now; the view is drawn again when that changes. */
export function useMedia(query: string): boolean {
  const [isMatching, setMatching] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const look = () => setMatching(media.matches);
    look();
    media.addEventListener("change", look);
    return () => media.removeEventListener("change", look);
  }, [query]);
  return isMatching;
}
