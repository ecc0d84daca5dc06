"""A worker dies while a tool runs: the call runs again under the same key, or says that it was interrupted."""

from collections.abc import Iterator
from typing import Any

import pytest

from chat.think import Think, Tool, ToolContext, tool
from fibers.context import current_fiber
from fibers.testing import die
from thinkproject.kernel.aio import db
from tools_app.models import ToolCallRecord

from .agents import MODELS
from .conftest import MakeRoom, status_of, text_of

RUNS: list[tuple[str, int]] = []
"""Key and attempt of each time that a tool began."""


async def _begin(context: ToolContext) -> str:
    RUNS.append((context.idempotency_key, context.attempt))
    if context.attempt == 1:
        fiber = current_fiber()
        assert fiber is not None
        assert await db(ToolCallRecord.objects.filter(turn_id=context.turn_id, status="running").exists)
        die(fiber)
    return "sent"


@tool
async def send(context: ToolContext) -> str:
    """Send a letter; sending it again under the same key sends nothing."""
    return await _begin(context)


@tool(reruns=False)
async def send_once(context: ToolContext) -> str:
    """Send a letter; nobody can tell whether it was sent."""
    return await _begin(context)


class Sender(Think):
    """Has both."""

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [send, send_once]


@pytest.fixture(autouse=True)
def _no_runs() -> Iterator[None]:
    RUNS.clear()
    yield
    RUNS.clear()


async def test_a_cut_call_runs_again_under_the_same_key(make_room: MakeRoom) -> None:
    room = make_room("sender")
    turn = await room.say("call tool send {} id=one\nsay: It says {result}.")
    assert (status_of(turn), turn.fiber.attempt) == ("completed", 2)
    assert [(f"{turn.pk}:one", 1), (f"{turn.pk}:one", 2)] == RUNS
    assert text_of((await room.transcript())[-1]) == "It says sent."
    [row] = await db(lambda: list(ToolCallRecord.objects.filter(turn_id=turn.pk)))
    assert (row.call_id, row.status, row.attempt) == ("one", "succeeded", 2)


async def test_a_tool_that_may_not_run_twice_is_reported_as_interrupted(make_room: MakeRoom) -> None:
    room = make_room("sender")
    turn = await room.say("call tool send_once {} id=one\nsay: It says {result}.")
    assert (status_of(turn), turn.fiber.attempt) == ("completed", 2)
    assert [(f"{turn.pk}:one", 1)] == RUNS
    answer = (await room.transcript())[-1]
    [call] = [part for part in answer["parts"] if "toolCallId" in part]
    assert call["state"] == "output-error"
    assert "interrupted" in call["errorText"]
    assert call["errorText"] in text_of(answer)  # the model was told
