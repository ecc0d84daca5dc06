"""The end of an answer: whether it is one. An answer without a word, or one that a filter stopped, is an error."""

from collections.abc import Iterator
from typing import Protocol

from chat.core.model.language_model import Finish, FinishReason, ModelEvent, ModelRequest, ToolCallEnd
from chat.errors import AnswerEmpty, AnswerFailed, ContentFiltered, ModelError, Overloaded


class AnswerReader(Protocol):
    """The state of one answer. `finish_seen`: the answer may be complete; `is_done`: nothing more can come."""

    is_done: bool

    @property
    def finish_seen(self) -> bool:
        """Whether the answer is complete, as far as is known."""

    @property
    def has_words(self) -> bool:
        """Whether there is anything in the answer for a person, or a call."""

    def feed(self, data: bytes) -> list[ModelEvent]:
        """Take the data of one event."""

    def end(self) -> list[ModelEvent]:
        """Flush the remaining events."""


def ended(name: str, reader: AnswerReader, request: ModelRequest) -> Iterator[ModelEvent]:
    """The last events of an answer. Errors: those of an answer that is none; its calls are not complete then."""
    *events, finish = reader.end()
    assert isinstance(finish, Finish)
    error = _error(name, finish, has_words=reader.has_words or request.continues)
    yield from events if error is None else (event for event in events if not isinstance(event, ToolCallEnd))
    if error is not None:
        if isinstance(error, AnswerFailed):
            error.finish = finish
        raise error
    yield finish


def _error(name: str, finish: Finish, *, has_words: bool) -> ModelError | None:
    """The error that an answer ends with; nothing for one that is whole. `name`: of the model.

    Without a word it may be asked for once more: nothing was shown that would come twice.
    """
    provider = name.partition("/")[0]
    reason = finish.reason
    if reason is FinishReason.CONTENT_FILTER:
        error: ModelError = ContentFiltered(
            f"The content filter of {provider} stopped the answer. Put the question in other words, or choose another "
            "model.",
            provider=provider,
        )
        error.data["should_retry"] = not has_words
        return error
    if reason is FinishReason.ERROR:
        return Overloaded(f"{provider} broke off its answer with an error.", provider=provider)
    if has_words:
        return None
    if reason is FinishReason.LENGTH:
        return AnswerEmpty(
            f"{name} reached its limit of tokens before the first word of its answer. Allow more tokens for the "
            "output, choose less reasoning effort, or ask for less at once.",
            provider=provider,
            should_retry=False,
        )
    return AnswerEmpty(
        f"{name} ended its answer without a word. Send the message again, or choose another model.", provider=provider
    )
