"""Answers that consist of several messages: one that waited for a decision or a result goes on in another one.

Each message is the answer of its own turn. People see one answer, with one line of figures below it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chat.reads.transcripts import TurnView


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The sums of the turns of one answer, `turn_ids` in order. Units: `duration_ms` without the time in between."""

    turn_ids: list[str]
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    cost: Decimal
    step_count: int
    duration_ms: int | None


def answers_of(turns: "Sequence[TurnView | None]") -> list[Answer | None]:
    """The sums, each where its answer ends, of the turns of a page of messages; nothing for an answer of one turn.

    Shape: as many as turns. A turn that another one of the page continues is no end. What lies before the page is not
    counted.
    """
    known = {turn.id: turn for turn in turns if turn is not None}
    continued = {turn.parent_id for turn in known.values()}
    return [None if turn is None or turn.id in continued else _sums(_chain(turn, known)) for turn in turns]


def _chain(turn: "TurnView", known: dict[str, "TurnView"]) -> "list[TurnView]":
    found = [turn]
    while (parent := known.get(found[0].parent_id or "")) is not None:
        found.insert(0, parent)
    return found


def _sums(turns: "list[TurnView]") -> Answer | None:
    if len(turns) == 1:
        return None
    durations = [turn.duration_ms for turn in turns if turn.duration_ms is not None]
    return Answer(
        turn_ids=[turn.id for turn in turns],
        input_tokens=sum(turn.input_tokens for turn in turns),
        output_tokens=sum(turn.output_tokens for turn in turns),
        reasoning_tokens=sum(turn.reasoning_tokens for turn in turns),
        cached_tokens=sum(turn.cached_tokens for turn in turns),
        cost=sum((turn.cost for turn in turns), Decimal()),
        step_count=sum(turn.step_count for turn in turns),
        duration_ms=sum(durations) if durations else None,
    )
