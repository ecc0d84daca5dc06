"""Room for the next model call: a conversation that does not fit is made smaller, and the call is made again.

Overflow is seen in three ways: the last step's tokens as the provider counted them, an estimate of the request that is
about to be sent, and the provider's own error. What is done about it is behind a port. How often is decided here: so
many times in a turn and not once more, whatever comes of it, and each time is in the journal before it begins, so that
a recovered turn knows of those of its earlier attempts.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from chat.core.model.language_model import (
    LanguageModel,
    ModelMessage,
    ModelRequest,
    TextContent,
    ToolMessage,
    Usage,
    UserMessage,
)
from thinkproject.kernel.jsonvalue import JSONObject

ROOM_PREFIX: Final = "room:"
MAX_COMPACTIONS_PER_TURN: Final = 2

SUMMARISED_TEXT: Final = (
    "The conversation had become too long, so its earlier part was summarised, or what tools gave was cut. Go on from "
    "where you stopped. If it is not clear what comes next, say what is unclear and ask."
)
"""The instruction for the call after a compaction between two steps. Never stored."""


class RoomMaker(Protocol):
    """Knows how much fits, and makes the conversation smaller."""

    def is_full(self, model: LanguageModel, request: ModelRequest, usage: Usage | None) -> bool:
        """Whether this request will not fit, or leaves no place for an answer. `usage`: of the call before it."""
        ...

    async def make_room(self, model: LanguageModel, *, was_refused: bool) -> bool:
        """Make what the next prompt holds smaller; false when there is nothing to do, or it failed. Never raises.

        `was_refused`: the provider refused the request as too large.
        """
        ...

    def resume(self, *, was_refused: bool) -> None:
        """Do again, without asking anybody, what an earlier attempt of this turn had done to its prompt."""
        ...


class _Records(Protocol):
    """The part of a journal that is needed here."""

    async def recorded(self, key: str) -> JSONObject | None: ...

    async def record(self, key: str, value: JSONObject) -> None: ...


class Room:
    """The room of one turn. Without a maker nothing is ever done."""

    def __init__(self, maker: RoomMaker | None, journal: _Records) -> None:
        self._maker = maker
        self._journal = journal
        self._attempts = 0
        self._made_for = -1  # number of the model call that the last attempt was for
        self._usage: Usage | None = None
        self._usage_number = -1  # of the model call that the usage is of
        self._is_useless = False  # by counting: it was tried, and there was nothing to do

    async def restore(self) -> None:
        """Learn what earlier attempts of the turn did."""
        while (record := await self._journal.recorded(f"{ROOM_PREFIX}{self._attempts}")) is not None:
            self._attempts += 1
            self._made_for = int(record["for"])
            if self._maker is not None:
                self._maker.resume(was_refused=bool(record["was_refused"]))

    def count(self, number: int, usage: Usage) -> None:
        """Note what a model call took, as its provider counted. Nothing counted says nothing."""
        if usage.input_tokens or usage.output_tokens:
            self._usage, self._usage_number = usage, number

    async def ensure_fits(self, number: int, model: LanguageModel, request: ModelRequest) -> bool:
        """Whether room was made for a request that is too large by count; then it is to be built anew."""
        if self._maker is None or self._is_useless or self._attempts >= MAX_COMPACTIONS_PER_TURN:
            return False
        # What a call took says nothing any more once room was made after it.
        known = self._usage if self._made_for <= self._usage_number else None
        if not self._maker.is_full(model, request, known):
            return False
        is_made = await self._make(number, model, was_refused=False)
        self._is_useless = not is_made
        return is_made

    async def reduce_after_overflow(self, number: int, model: LanguageModel) -> bool:
        """Whether room was made after the provider refused a request for its length; then it is to be sent again."""
        if self._maker is None or self._attempts >= MAX_COMPACTIONS_PER_TURN:
            return False
        return await self._make(number, model, was_refused=True)

    async def _make(self, number: int, model: LanguageModel, *, was_refused: bool) -> bool:
        assert self._maker is not None
        key = f"{ROOM_PREFIX}{self._attempts}"
        self._attempts += 1
        self._made_for = number
        await self._journal.record(key, {"for": number, "was_refused": was_refused})
        return await self._maker.make_room(model, was_refused=was_refused)

    def with_line(self, number: int, messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
        """The messages of a call; between two steps, after a compaction, with a line that asks to go on."""
        if self._made_for == number and messages and isinstance(messages[-1], ToolMessage):
            return (*messages, UserMessage(content=(TextContent(text=SUMMARISED_TEXT),)))
        return tuple(messages)
