// The figures of an answer: those of the several turns that have made it where it was interrupted by a question, and in words.

import { duration, evenMoney, fullTime } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import type { Message, TurnFacts } from "./types.ts";

/** The turns of these messages as one; null where none is known. The last one says how it ended. */
export function turnOf(messages: readonly Message[]): TurnFacts | null {
  const turns = messages.flatMap((message) => (message.turn ? [message.turn] : []));
  const last = turns.at(-1);
  if (!last || turns.length === 1) return last ?? null;
  const sum = (value: (turn: TurnFacts) => number | null | undefined) =>
    turns.reduce((total, turn) => total + (value(turn) ?? 0), 0);
  const costs = turns.filter((turn) => turn.cost !== null && turn.cost !== undefined);
  return {
    ...last,
    model: [...new Set(turns.map((turn) => turn.model).filter(Boolean))].join(", "),
    input_tokens: sum((turn) => turn.input_tokens),
    output_tokens: sum((turn) => turn.output_tokens),
    cached_tokens: sum((turn) => turn.cached_tokens),
    reasoning_tokens: sum((turn) => turn.reasoning_tokens),
    step_count: sum((turn) => turn.step_count),
    duration_ms: sum((turn) => turn.duration_ms),
    cost: costs.length ? String(sum((turn) => Number(turn.cost))) : null,
  };
}

/** What a turn took: `short` for the line under an answer (how it ended, its cost), `long` for its details. */
export function turnFacts(turn: TurnFacts): { short: string; long: string } {
  const read = turn.input_tokens ?? 0;
  const written = turn.output_tokens ?? 0;
  const short = [
    ["cancelled", "aborted"].includes(turn.status) && t("message.stopped"),
    Number(turn.cost) > 0 && evenMoney(turn.cost!),
  ];
  const long = [
    turn.model,
    (turn.duration_ms ?? 0) > 0 && duration(turn.duration_ms!),
    tokensRead(read, turn.cached_tokens ?? 0),
    tokensWritten(written, turn.reasoning_tokens ?? 0),
    (turn.step_count ?? 0) > 1 && t("message.steps", { count: turn.step_count! }),
    turn.finished_at && fullTime(turn.finished_at),
  ];
  return { short: short.filter(Boolean).join(" · "), long: long.filter(Boolean).join("; ") };
}

function tokensRead(count: number, cached: number): string {
  const read = t("message.tokens-read", { count });
  return cached ? t("message.tokens-read-cached", { read, cached }) : read;
}

function tokensWritten(count: number, thought: number): string {
  const written = t("message.tokens-written", { count });
  return thought ? t("message.tokens-written-thought", { written, thought }) : written;
}
