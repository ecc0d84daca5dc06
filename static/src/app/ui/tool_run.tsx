// Many tool calls in a row: one line that says how many and how they stand, and opens to the calls themselves.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { isSettled } from "../store/fold.ts";
import { runSummary } from "../store/runs.ts";
import type { ToolPart } from "../store/types.ts";
import { Fold } from "./fold.tsx";
import type { Opened } from "./message.tsx";

interface Props {
  parts: readonly ToolPart[];
  isLive: boolean;
  opened: Opened;
  children: ComponentChildren;
}

export function ToolRun({ parts, isLive, opened, children }: Props) {
  const { label, note, hasFailed } = runSummary(parts, isLive);
  const marks = [
    "tool-run",
    hasFailed && "has-failed",
    isLive && !parts.every(isSettled) && "is-live",
  ];
  // A call that is being read stays in sight when others join it.
  const [isRead] = useState(() => parts.some((part) => opened.calls.has(part.toolCallId)));
  return (
    <Fold icon="tool" class={marks.filter(Boolean).join(" ")} label={label} note={note} isOpen={isRead}>
      {() => <div class="tool-run-calls">{children}</div>}
    </Fold>
  );
}
