"""Answers to the questions of a probe, and the message that the product would store of one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from chat.core.loop.turn_state import EventTranslator, TurnState
from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    TextWasReasoning,
    ToolCallEnd,
    Usage,
)
from chat.core.wire import chunks
from chat.errors import ModelError
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.jsonvalue import JSONObject, load
from tools_app.core.call_check import CheckedCall

RESULT: Final = "found"
_PLAIN: Final = frozenset(
    {"role", "content", "tool_calls", "id", "type", "function", "name", "arguments", "call_id", "summary"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer as far as it came. `refusals`: words of the requests that were refused on the way to it."""

    events: tuple[ModelEvent, ...] = ()
    error: ModelError | None = None
    refusals: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def pieces(self) -> list[str]:
        """The pieces of its text."""
        return [event.text for event in self.events if isinstance(event, TextDelta) and event.text]

    @property
    def text(self) -> str:
        """Its text."""
        return "".join(self.pieces)

    @property
    def calls(self) -> int:
        """The number of its calls."""
        return sum(isinstance(event, ToolCallEnd) for event in self.events)

    @property
    def has_reasoning(self) -> bool:
        """Whether reasoning was shown."""
        return any(
            isinstance(event, TextWasReasoning) or (isinstance(event, ReasoningDelta) and bool(event.text))
            for event in self.events
        )

    @property
    def usage(self) -> Usage:
        """Its counts."""
        return next((event.usage for event in self.events if isinstance(event, Finish)), Usage())

    @property
    def is_cut(self) -> bool:
        """Whether it was too long for what a probe allows."""
        return any(isinstance(event, Finish) and event.reason is FinishReason.LENGTH for event in self.events)


def stored_answer(events: Iterable[ModelEvent]) -> Message:
    """The message that is stored of an answer, with a result for each call."""
    fold = TurnState("m2")
    fold.apply(chunks.start("m2"))
    fold.apply(chunks.start_step())
    checked = EventTranslator(
        fold,
        lambda _name, arguments: CheckedCall(input=_input(arguments)),
        repair=str,
        send_reasoning=True,
        titles={},
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )
    for event in events:
        for chunk in checked(event):
            fold.apply(chunk)
    for chunk in (*checked.close(), *(chunks.tool_output_available(c.call_id, RESULT) for c in fold.unsettled_calls())):
        fold.apply(chunk)
    fold.apply(chunks.finish_step())
    return fold.message


def _input(arguments: str) -> JSONObject:
    try:
        value = load(arguments)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {}


def extra_fields(messages: Iterable[JSONObject]) -> Iterator[str]:
    """The names of the fields of an answer that goes back that are no words of it, dotted."""
    for message in messages:
        for item in (message, *message.get("tool_calls", ())):
            for key, value in item.items():
                if key not in _PLAIN:
                    yield ".".join(_path(key, value))


def _path(key: str, value: object) -> Iterator[str]:
    yield key
    while isinstance(value, dict) and len(value) == 1:
        [(key, value)] = value.items()
        yield key
