"""Tools whose work is cut: by a worker that dies, or by a person who stops the turn."""

import asyncio
from typing import Any

import pytest

from chat.testing import worker
from chat.think import Think, Tool, ToolContext, tool
from fibers.context import current_fiber
from fibers.testing import die
from sessions_app.core.messages import call_texts
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.gated import until
from thinkproject.kernel.aio import db
from tools_app.models import ToolCallRecord

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
    """Send a letter; whether it was sent cannot be known."""
    return await _begin(context)


STOPPED: list[str] = []
"""Calls that learned that their turn was stopped."""


@tool
async def linger(context: ToolContext) -> str:
    """Work until a user stops it."""
    RUNS.append((context.call_id, context.attempt))
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        STOPPED.append(context.call_id)
        raise
    return "never"


class Sender(Think):
    """Has all of them."""

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [send, send_once, linger]


@pytest.fixture(autouse=True)
def _no_runs() -> None:
    for noted in (RUNS, STOPPED):
        noted.clear()


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
    assert call["errorText"] in text_of(answer)  # the model saw it


async def test_a_stop_reaches_tools_that_run(make_room: MakeRoom) -> None:
    room = make_room("sender")
    async with worker(), asyncio.timeout(30):
        admission = await room.admit("call tool linger {} id=one\ncall tool linger {} id=two\nsay: Never.")

        async def both_run() -> bool:
            return len(RUNS) == 2

        await until(both_run)
        assert await room.handle.abort_all_requests()
        assert await room.handle.wait_until_stable(20)
    assert sorted(STOPPED) == ["one", "two"]
    assert status_of(await room.turn(admission.turn.pk)) == "aborted"
    assert len(room.model.requests) == 1
    calls = [part for message in await room.transcript() for part in message["parts"] if "toolCallId" in part]
    assert [(call["state"], call["errorText"]) for call in calls] == [("output-error", call_texts.INTERRUPTED)] * 2
    rows = await db(lambda: list(ToolCallRecord.objects.filter(turn_id=admission.turn.pk)))
    assert [(row.status, row.output) for row in rows] == [("failed", call_texts.INTERRUPTED)] * 2
    await room.say("say: On we go.")
    assert text_of((await room.transcript())[-1]) == "On we go."
