// The figures of an answer that several turns have made: it was interrupted by a question, and went on. Pure.

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
