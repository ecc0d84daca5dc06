// A button at an end of the list that loads the page beyond it, by itself as soon as one comes near.

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type MessageKey, t } from "../lib/i18n.ts";

const NEAR = "900px 0px 900px 0px";

interface Props {
  id: string;
  label: MessageKey;
  /** Said instead when a page could not be loaded. */
  failed: MessageKey;
  isThere: boolean;
  scroller: RefObject<HTMLElement | null>;
  load: () => Promise<void>;
}

export function LoadMore({ id, label, failed, isThere, scroller, load }: Props) {
  const button = useRef<HTMLButtonElement>(null);
  const [hasFailed, setFailed] = useState(false);
  const [loads, setLoads] = useState(0);
  const run = async () => {
    try {
      await load();
      setFailed(false);
      setLoads((count) => count + 1);
    } catch {
      setFailed(true); // it is tried again when it is pressed
    }
  };
  const newest = useRef(run);
  newest.current = run;
  useEffect(() => {
    if (!isThere) return;
    // An observer tells of changes only: a new one looks again in case the button is still near.
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && newest.current(),
      { root: scroller.current, rootMargin: NEAR },
    );
    observer.observe(button.current!);
    return () => observer.disconnect();
  }, [isThere, loads]);
  return (
    <button id={id} type="button" class="button older" hidden={!isThere} ref={button} onClick={run}>
      {t(hasFailed ? failed : label)}
    </button>
  );
}
