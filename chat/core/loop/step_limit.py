"""The limit of an answer's steps: when the model is asked for the last time, and what people read there.

An answer that waits for a decision or a result goes on in another turn. It stays one answer: the steps of the turns
before count here, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chat.core.loop.hooks import StepRecord, StopCondition
from chat.core.loop.turn_state import TurnState
from chat.core.wire import chunks
from chat.core.wire.chunks import Chunk

STEP_LIMIT: Final = "step_limit"
STOP_CONDITION: Final = "stop_condition"
STEP_LIMIT_TEXT: Final = "This answer stopped at its limit of {steps} steps. Write a message to have it go on."


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLimit:
    """The bounds of one answer. `earlier`: steps of the turns that this one goes on from, oldest first.

    After `max_steps` steps with calls the model is asked once more, with no call allowed, unless it has to call
    (`asks_last`). Then people read `text`, with the number for `{steps}`; empty where the end needs no words.
    """

    max_steps: int = 10
    stop_when: tuple[StopCondition, ...] = ()
    earlier: tuple[StepRecord, ...] = ()
    asks_last: bool = True
    text: str = STEP_LIMIT_TEXT

    def is_reached(self, count: int) -> bool:
        """Whether no call is allowed any more after so many steps of this turn."""
        return self.asks_last and len(self.earlier) + count >= self.max_steps

    def end_of(self, steps: Sequence[StepRecord], *, wants_more: bool) -> str | None:
        """Why a turn of these steps is over: empty where the model was done; `None` while it goes on."""
        count = len(self.earlier) + len(steps)
        at_limit = STEP_LIMIT if self.text else ""
        if count > self.max_steps:
            return at_limit
        if not wants_more:
            return ""
        if any(condition((*self.earlier, *steps)) for condition in self.stop_when):
            return STOP_CONDITION
        return None if count < self.max_steps or self.asks_last else at_limit

    def said_at(self, ended: str, fold: TurnState) -> list[Chunk]:
        """The chunks with the text that the message lacks yet, where an answer has ended at its limit."""
        text = self.text.replace("{steps}", str(self.max_steps))
        if ended != STEP_LIMIT:
            return []
        part_id, said = fold.open_text_id, fold.step_text().endswith(text)
        begin = [chunks.text_start(fold.new_part_id())] if part_id is None and not said else []
        part_id = fold.new_part_id() if part_id is None else part_id
        end = [chunks.text_end(part_id)] if fold.open_text_id is not None or not said else []
        return [*begin, *([] if said else [chunks.text_delta(part_id, text)]), *end]
