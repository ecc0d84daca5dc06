// What a section shows is read from the server when it is opened.

import { useEffect, useState } from "preact/hooks";
import { Reading } from "../ui/reading.ts";

/** Read at once, and again when asked. */
export function useSection<Value>(read: (signal: AbortSignal) => Promise<Value>): Reading<Value> {
  const [reading] = useState(() => new Reading(read));
  useEffect(() => {
    reading.again();
    return () => reading.stop();
  }, []);
  void reading.version;
  return reading;
}
