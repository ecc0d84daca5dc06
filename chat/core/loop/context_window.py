"""Keeps the requests of one turn within the model's context window.

An overflow is detected in three ways: by the provider's token count of the last call, by an estimate of the next
request, and by the provider's error. `ContextReducer` does the reducing; this module decides how often. Each attempt is
journalled before it begins, so a recovered turn counts those of its earlier attempts, and there are never more than
`MAX_COMPACTIONS_PER_TURN`.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from chat.core.context.too_large import too_large
from chat.core.model.language_model import (
    LanguageModel,
    ModelMessage,
    ModelRequest,
    TextContent,
    ToolMessage,
    Usage,
    UserMessage,
)
from chat.errors import ContextOverflow, ModelError
from thinkproject.kernel.jsonvalue import JSONObject

ATTEMPT_PREFIX: Final = "room:"
MAX_COMPACTIONS_PER_TURN: Final = 2

SUMMARISED_TEXT: Final = (
    "The conversation had become too long, so its earlier part was summarised, or what tools gave was cut. Go on from "
    "where you stopped. If it is not clear what comes next, say what is unclear and ask."
)
"""The instruction for the call after a compaction between two steps. Never stored."""


class ContextReducer(Protocol):
    """Compares requests with the model's limits, and shortens the next request."""

    def is_over_limit(self, model: LanguageModel, request: ModelRequest, usage: Usage | None) -> bool:
        """Whether the request, with space for an answer, exceeds the limits. `usage`: of the previous call."""

    async def reduce(self, model: LanguageModel, *, was_refused: bool) -> bool:
        """Shorten the next prompt. False if there was nothing to do or it failed.

        `was_refused`: the provider refused the request as too large. Errors: `ContextOverflow` for a request that the
        provider would cut without a word.
        """

    def resume(self, *, was_refused: bool) -> None:
        """Repeat the shortening that an earlier attempt of this turn recorded, without asking a model."""


class _Records(Protocol):
    """The part of a journal that is needed here."""

    async def recorded(self, key: str) -> JSONObject | None: ...

    async def record(self, key: str, value: JSONObject) -> None: ...


class ContextWindow:
    """The context window of one turn. Without a reducer nothing is ever shortened."""

    def __init__(self, reducer: ContextReducer | None, journal: _Records) -> None:
        self._reducer = reducer
        self._journal = journal
        self._attempts = 0
        self._reduced_for = -1  # number of the model call that the last attempt was for
        self._usage: Usage | None = None
        self._usage_number = -1  # number of the model call that reported the usage
        self._is_exhausted = False  # an attempt before a call found nothing to shorten
        self._request: ModelRequest | None = None  # the last one that was to be sent

    async def restore(self) -> None:
        """Repeat what earlier attempts of the turn did."""
        while (record := await self._journal.recorded(f"{ATTEMPT_PREFIX}{self._attempts}")) is not None:
            self._attempts += 1
            self._reduced_for = int(record["for"])
            if self._reducer is not None:
                self._reducer.resume(was_refused=bool(record["was_refused"]))

    def count(self, number: int, usage: Usage) -> None:
        """Note the usage that the provider reported for a model call; one without figures is ignored."""
        if usage.input_tokens or usage.output_tokens:
            self._usage, self._usage_number = usage, number

    async def ensure_fits(self, number: int, model: LanguageModel, request: ModelRequest) -> bool:
        """Whether a request that is too large by count was shortened; the caller then builds it again."""
        self._request = request
        if self._reducer is None or self._is_exhausted or self._attempts >= MAX_COMPACTIONS_PER_TURN:
            return False
        # A count from before the last reduction no longer describes the prompt.
        known = self._usage if self._reduced_for <= self._usage_number else None
        if not self._reducer.is_over_limit(model, request, known):
            return False
        is_reduced = await self._reduce(number, model, was_refused=False)
        self._is_exhausted = not is_reduced
        return is_reduced

    async def reduce_after_overflow(self, number: int, model: LanguageModel) -> bool:
        """Whether the prompt was shortened after the provider refused it; the caller then sends it again."""
        if self._reducer is None or self._attempts >= MAX_COMPACTIONS_PER_TURN:
            return False
        return await self._reduce(number, model, was_refused=True)

    def explained(self, error: ModelError, model: LanguageModel, context_tokens: int) -> ContextOverflow:
        """The error of a request that stays too large, in a sentence that names what is; with the error's data.

        `context_tokens`: the model's limit, 0 if unknown.
        """
        assert self._request is not None, "a request is refused after it was made"
        return ContextOverflow(too_large(self._request, model.name, context_tokens), **error.data)

    async def _reduce(self, number: int, model: LanguageModel, *, was_refused: bool) -> bool:
        assert self._reducer is not None
        key = f"{ATTEMPT_PREFIX}{self._attempts}"
        self._attempts += 1
        self._reduced_for = number
        await self._journal.record(key, {"for": number, "was_refused": was_refused})
        return await self._reducer.reduce(model, was_refused=was_refused)

    def with_resume_notice(self, number: int, messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
        """The messages of a call. After a compaction between two steps an instruction to continue follows them."""
        if self._reduced_for == number and messages and isinstance(messages[-1], ToolMessage):
            return (*messages, UserMessage(content=(TextContent(text=SUMMARISED_TEXT),)))
        return tuple(messages)
