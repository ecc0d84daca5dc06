"""An agent whose turns are asked for by programs that bring tools, and what such a program does."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from chat.instance.handle import ChatResult
from chat.testing import worker
from chat.think import (
    Think,
    ToolCallContext,
    ToolContext,
    ToolOutcome,
    tool,
)
from chat.turns.admission.intake import Program
from fibers.context import current_fiber
from fibers.testing import die
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.conftest import Room, text_of

NOTED: list[Any] = []
"""What tools and hooks did, in order."""

RULES: dict[str, Any] = {}
"""What the agent's `before_tool_call` says, and where its worker dies."""

FETCH = "call tool fetch {} id=one\nsay: It says {result}."
PLACE = {
    "name": "locate",
    "description": "Say where the device is.",
    "parameters": {"type": "object", "properties": {"exact": {"type": "boolean"}}, "required": ["exact"]},
}
LOCATE = 'call tool locate {"exact": true} id=one\nsay: It says {result}.'


class Called(Think):
    """Has one tool of its own, and lets the test decide about calls."""

    workspace_tools = False

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> Any:
        @tool(name="own")
        def own() -> str:
            """The agent's."""
            return "the agent's"

        return [own]

    def before_tool_call(self, context: ToolCallContext) -> Any:
        fiber = current_fiber()
        if fiber is not None and fiber.attempt == RULES.get("dies in"):
            NOTED.append("died")
            die(fiber)
        return RULES.get("decision")

    def after_tool_call(self, outcome: ToolOutcome) -> None:
        NOTED.append(("after", outcome.success, outcome.output))


class CodingCalled(Called):
    """Has code over its tools as well."""

    code_tool = True


@tool
async def fetch(context: ToolContext) -> str:
    """Fetch the report."""
    NOTED.append(f"fetch {context.call_id} {context.idempotency_key.partition(':')[2]} {context.attempt}")
    return "the report"


async def chat(room: Room, text: str, **extra: Any) -> ChatResult:
    async with worker(), asyncio.timeout(30):
        return await room.handle.chat(text, **extra)


def said(result: ChatResult) -> str:
    assert result.message is not None
    return text_of(result.message)


def part_of(result: ChatResult, call_id: str = "one") -> dict[str, Any]:
    assert result.message is not None
    [part] = [dict(part) for part in result.message["parts"] if part.get("toolCallId") == call_id]
    return part


def has(request: Any, name: str) -> bool:
    """Whether a request to the model offers a tool."""
    return name in [found["name"] for found in request["tools"]]


def words(text: str) -> Program:
    return Program(messages=[{"role": "user", "parts": [{"type": "text", "text": text}]}])


@pytest.fixture(autouse=True)
def no_rules() -> Iterator[None]:
    NOTED.clear()
    RULES.clear()
    yield
    RULES.clear()
