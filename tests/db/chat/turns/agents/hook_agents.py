"""Agents whose hooks a test decides. Importing this module serves them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chat.think import (
    ChatErrorContext,
    ChatResponse,
    ChunkContext,
    RecoveryContext,
    SessionSetup,
    StepContext,
    StepRecord,
    Tool,
    ToolCallContext,
    ToolContext,
    ToolOutcome,
    TurnContext,
    tool,
)
from tests.db.chat.turns.agents.everyday import SEEN, Plain, count

HOOKS: dict[str, Callable[..., Any]] = {}
"""What the hooks of `Flexible` do, by name; the others have no opinion. `SEEN` has what each was given."""


@tool
def tell(context: ToolContext) -> str:
    """Tell what the hooks share."""
    return str(context.shared)


class Flexible(Plain):
    """Its hooks are what the test says, and are written down."""

    def _hook(self, name: str, given: Any, *more: Any) -> Any:
        SEEN.append((name, (given, *more) if more else given))
        return HOOKS[name](given, *more) if name in HOOKS else None

    def get_tools(self) -> list[Tool]:
        return [*super().get_tools(), tell]

    def configure_session(self, session: SessionSetup) -> Any:
        return self._hook("configure_session", session)

    def before_turn(self, context: TurnContext) -> Any:
        return self._hook("before_turn", context)

    async def before_step(self, context: StepContext) -> Any:
        return self._hook("before_step", context)

    def before_tool_call(self, context: ToolCallContext) -> Any:
        return self._hook("before_tool_call", context)

    async def after_tool_call(self, outcome: ToolOutcome) -> Any:
        return self._hook("after_tool_call", outcome)

    def on_chunk(self, context: ChunkContext) -> Any:
        return self._hook("on_chunk", context)

    def on_step_finish(self, record: StepRecord) -> Any:
        return self._hook("on_step_finish", record)

    async def on_chat_response(self, response: ChatResponse) -> Any:
        return self._hook("on_chat_response", response)

    def on_chat_error(self, error: Exception, context: ChatErrorContext) -> Any:
        return self._hook("on_chat_error", error, context)

    def on_chat_recovery(self, context: RecoveryContext) -> Any:
        return self._hook("on_chat_recovery", context)


class Counting(Flexible):
    """Has a tool that tells how far it is, and nothing else."""

    def get_tools(self) -> list[Tool]:
        return [count]


def seen(name: str) -> list[Any]:
    """What the hook of this name was given, in order."""
    return [value for found, value in SEEN if found == name]


def order() -> list[str]:
    """Names of the hooks as they ran; chunks in a row count once."""
    names = [name for name, _ in SEEN]
    return [name for at, name in enumerate(names) if name != "on_chunk" or names[at - 1 : at] != [name]]


@pytest.fixture(autouse=True)
def no_hooks() -> Iterator[None]:
    HOOKS.clear()
    yield
    HOOKS.clear()
