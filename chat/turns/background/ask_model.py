"""Single questions to a model outside of turns: titles and summaries. Their cost counts on the session."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from chat.agent.think import Think
from chat.core.model.language_model import (
    Finish,
    LanguageModel,
    ModelRequest,
    Spent,
    TextDelta,
    TextWasReasoning,
    Usage,
)
from chat.errors import AnswerFailed
from chat.llm.registry import guarded, resolve_model
from chat.models import SideCallKind
from chat.turns.background.costs import count_side_call, price_calls, usage_of_call
from chat.user_code.call_hook import call_hook

SECONDS: Final = 120.0
MAX_CHARACTERS: Final = 20_000  # of an answer, its reasoning left out


async def small_model(agent: Think, choice: Any) -> LanguageModel:
    """The model of such a question; an empty choice is the agent's own."""
    chosen = await call_hook(agent, "get_model") if choice == "" else choice
    return guarded(resolve_model(chosen))


async def ask(
    model: LanguageModel,
    request: ModelRequest,
    *,
    seconds: float | None = SECONDS,
    max_characters: int | None = MAX_CHARACTERS,
) -> tuple[str, Finish | None]:
    """Ask a model once. Returns its text and how the answer ended; no end where the text is too long.

    The usage of the end is that of all attempts. Tools that the model calls are not run.
    Errors: `ModelError`, `TimeoutError`.
    """
    texts: list[str] = []
    length = 0
    spent = Usage()
    try:
        async with asyncio.timeout(seconds), aclosing(model.stream(request)) as events:
            async for event in events:
                if isinstance(event, Finish):
                    return "".join(texts), replace(event, usage=event.usage + spent)
                if isinstance(event, Spent):
                    spent += event.usage
                if isinstance(event, TextWasReasoning):
                    texts.clear()
                elif isinstance(event, TextDelta):
                    texts.append(event.text)
                    length += len(event.text)
                    if max_characters is not None and length > max_characters:
                        break
    except AnswerFailed as error:
        if not isinstance(error.finish, Finish):
            raise
        # No answer, which callers know; what it cost counts.
        return "", replace(error.finish, usage=error.finish.usage + spent)
    return "".join(texts), None


def count_call(session_id: str, kind: SideCallKind, model_name: str, finish: Finish | None) -> None:
    """Add a call's usage to the session, and to what is counted by its kind."""
    usage = Usage() if finish is None else finish.usage
    reported = finish.model_name if finish else ""
    cost = price_calls()((model_name, reported), usage)
    count_side_call(session_id, kind, reported or model_name, usage_of_call(usage, cost))
