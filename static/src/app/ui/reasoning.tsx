// What a model thought before it answered: one line that says how long it took, and opens.

import { duration } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import type { ReasoningPart } from "../store/types.ts";
import { Elapsed } from "./elapsed.tsx";
import { Fold } from "./fold.tsx";
import { LiveText } from "./live_text.tsx";

interface Props {
  part: ReasoningPart;
  isLive: boolean;
  paint: (change: () => void) => void;
}

const BRIEF_MS = 1_000;

export function Reasoning({ part, isLive: isMessageLive, paint }: Props) {
  const isLive = isMessageLive && part.state !== "done";
  const ms = reasoningTime(part);
  const label = isLive
    ? t("message.thinking")
    : ms >= BRIEF_MS
    ? t("message.thought-for", { time: duration(ms) })
    : ms
    ? t("message.thought-briefly")
    : t("message.thought");
  return (
    <Fold
      icon="thought"
      class={isLive ? "reasoning is-live" : "reasoning"}
      label={label}
      note={isLive && part.startedAt ? <Elapsed since={part.startedAt} /> : null}
      hidden={!part.text && !isLive}
    >
      {() => <LiveText text={part.text} isLive={isLive} paint={paint} />}
    </Fold>
  );
}

/** Milliseconds: as the server stored it, else as this tab saw it. */
function reasoningTime(part: ReasoningPart): number {
  const stored = (part.providerMetadata?.think as { durationMs?: unknown } | undefined)?.durationMs;
  if (typeof stored === "number") return stored;
  return part.startedAt && part.endedAt ? part.endedAt - part.startedAt : 0;
}
