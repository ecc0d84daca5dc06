"""Short questions to a model besides the turns: a title, a summary for people. What they cost counts on the session."""

import asyncio
from contextlib import aclosing
from typing import Any, Final

from chat.agent.think import Think
from chat.core.model.language_model import Finish, LanguageModel, ModelRequest, TextDelta, Usage
from chat.llm.registry import guarded, resolve_model
from chat.turns.background.costs import price_calls
from chat.user_code.calls import call_hook
from sessions_app.messages.usage import SessionUsage, add_usage

SECONDS: Final = 120.0
_MAX_CHARACTERS: Final = 20_000  # of an answer, its reasoning left out


async def small_model(agent: Think, choice: Any) -> LanguageModel:
    """The model of such a question; an empty choice is the agent's own."""
    chosen = await call_hook(agent, "get_model") if choice == "" else choice
    return guarded(resolve_model(chosen))


async def ask(model: LanguageModel, request: ModelRequest) -> tuple[str, Finish | None]:
    """What a model says, and how it ended; no end where it said too much. Errors: `ModelError`, `TimeoutError`."""
    said: list[str] = []
    async with asyncio.timeout(SECONDS), aclosing(model.stream(request)) as events:
        async for event in events:
            if isinstance(event, Finish):
                return "".join(said), event
            if isinstance(event, TextDelta):
                said.append(event.text)
                if sum(map(len, said)) > _MAX_CHARACTERS:
                    break
    return "".join(said), None


def count_call(session_id: str, model_name: str, finish: Finish | None) -> None:
    """Add to the session what a call used."""
    usage = Usage() if finish is None else finish.usage
    cost = price_calls()((model_name, finish.model_name if finish else ""), usage)
    add_usage(
        session_id,
        SessionUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            cached_tokens=usage.cached_tokens,
            cost=cost,
        ),
    )
