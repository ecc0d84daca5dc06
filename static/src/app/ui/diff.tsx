// A diff as lines that differ by their sign as well as by their colour.

import { useState } from "preact/hooks";
import type { DiffLine } from "../lib/diff.ts";
import { withoutTricks } from "../lib/readable.ts";
import { t } from "../lib/i18n.ts";

const CLASSES = { added: "is-added", gone: "is-gone", place: "is-place", same: undefined };
const MOST_AT_FIRST = 500;

/** `lines`: without file names. `label`: what it is a diff of. */
export function DiffView({ lines, label }: { lines: readonly DiffLine[]; label: string }) {
  const [isWhole, setWhole] = useState(false);
  const left = lines.length - MOST_AT_FIRST;
  const shown = isWhole ? lines : lines.slice(0, MOST_AT_FIRST);
  return (
    <>
      <pre class="diff" tabIndex={0} role="group" aria-label={label} dir="ltr">
        {shown.map(({ kind, text }, index) => <span key={index} class={CLASSES[kind]}>{`${withoutTricks(text)}\n`}</span>)}
      </pre>
      {left > 0 && !isWhole && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          {t("calls.more-lines", { count: left })}
        </button>
      )}
    </>
  );
}

interface Counted {
  path: string;
  lines: readonly DiffLine[];
  added: number;
  removed: number;
}

/** The diff of a file below the number of its lines that came and went. */
export function CountedDiff({ path, lines, added, removed }: Counted) {
  return (
    <div>
      <p class="muted tool-note">
        {t("calls.lines-changed", {
          added: t("calls.lines-added", { count: added }),
          removed: t("calls.lines-removed", { count: removed }),
        })}
      </p>
      <DiffView lines={lines} label={t("calls.diff-of", { path })} />
    </div>
  );
}
