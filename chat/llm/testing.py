"""Small factories for tests of models: a request from a line of text, and the events of an answer read to the end."""

import contextlib
from collections.abc import Iterable

from chat.core.model.language_model import (
    LanguageModel,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelSettings,
    ReasoningDelta,
    TextContent,
    TextDelta,
    TextWasReasoning,
    ToolSpec,
    UserMessage,
)
from chat.errors import ModelError


def user(text: str) -> UserMessage:
    """A user's message of one text."""
    return UserMessage(content=(TextContent(text=text),))


def make_request(
    *messages: str | ModelMessage,
    system: str = "Be brief.",
    tools: tuple[ToolSpec, ...] = (),
    settings: ModelSettings | None = None,
) -> ModelRequest:
    """A request; plain text stands for a user's message."""
    converted = tuple(user(message) if isinstance(message, str) else message for message in messages)
    return ModelRequest(system=system, messages=converted, tools=tools, settings=settings or ModelSettings())


async def collect(model: LanguageModel, request: ModelRequest) -> list[ModelEvent]:
    """Every event of the answer. Errors: the model's."""
    async with contextlib.aclosing(model.stream(request)) as events:
        return [event async for event in events]


async def collect_until_error(
    model: LanguageModel, request: ModelRequest
) -> tuple[list[ModelEvent], ModelError | None]:
    """A collected answer, with the error that ended it, if any."""
    events: list[ModelEvent] = []
    try:
        async with contextlib.aclosing(model.stream(request)) as stream:
            async for event in stream:
                events.append(event)  # noqa: PERF401 - a comprehension would lose what came before the error
    except ModelError as error:
        return events, error
    return events, None


def text_of(events: Iterable[ModelEvent]) -> str:
    """The text that a reader sees in the end."""
    texts: list[str] = []
    for event in events:
        if isinstance(event, TextDelta):
            texts.append(event.text)
        elif isinstance(event, TextWasReasoning):
            texts.clear()
    return "".join(texts)


def reasoning_of(events: Iterable[ModelEvent]) -> str:
    """The reasoning."""
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))
