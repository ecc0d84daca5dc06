// How far a call is that another process runs: its title in words, the rest as it is.

import { withoutTricks } from "../lib/readable.ts";
import type { Fiber } from "../net/background_api.ts";
import { textIn } from "../store/tool_details.ts";
import { Value } from "./value.tsx";

export function JobProgress({ progress }: { progress: NonNullable<Fiber["progress"]> }) {
  const { title: _title, ...more } = progress;
  const title = textIn(progress, "title");
  return (
    <>
      {title && <p dir="auto">{withoutTricks(title)}</p>}
      {Object.keys(more).length > 0 && <Value value={more} />}
    </>
  );
}
