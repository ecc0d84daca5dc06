// How long something has taken so far. It counts by itself; nothing around it is drawn anew, and nothing is announced each second.

import { useEffect, useState } from "preact/hooks";
import { duration } from "../lib/format.ts";

const SHOWN_AFTER_MS = 2_000; // what is over at once needs no number

/** `since`: milliseconds since the epoch. */
export function Elapsed({ since }: { since: number }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const ms = now - since;
  if (ms < SHOWN_AFTER_MS) return null;
  return <span class="elapsed">{duration(Math.floor(ms / 1_000) * 1_000)}</span>;
}
