"""What people see of a call while it runs and afterwards, also of one that is cut."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chat.streams.reader import read
from chat.testing import worker
from chat.think import Think, Tool, ToolContext, ToolOutput, tool
from fibers.context import current_fiber
from fibers.testing import die
from sessions_app.core.messages import call_texts
from sessions_app.core.messages.shapes import OURS
from tests.db.chat.turns.agents.answering import Desk
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.gated import until
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import load
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom, Room, status_of, text_of

RUNS: list[int] = []
ENDS: list[asyncio.Event] = []
"""Lets deaf tools end, at the end of a test."""


@tool
async def walk() -> AsyncIterator[Any]:
    """Walk."""
    yield ToolOutput(value="a", title="Walking", metadata={"step": 1})
    yield ToolOutput(value="ab", metadata={"step": 2})


@tool
async def report(context: ToolContext) -> str:
    """Report, and go on once that was shown."""
    context.progress(title="Half", metadata={"done": 1})
    await asyncio.sleep(0.2)  # longer than the least time between two reports
    return "done"


@tool(needs_approval=True)
def ask_first() -> ToolOutput:
    """Ask."""
    return ToolOutput(value="paid", title="Paid 5", metadata={"amount": 5})


@tool
async def fall(context: ToolContext) -> AsyncIterator[Any]:
    """Show something, and lose the worker the first time."""
    RUNS.append(context.attempt)
    yield "half"
    if context.attempt == 1:
        await asyncio.sleep(0.05)  # until what was shown is in the log
        fiber = current_fiber()
        assert fiber is not None
        die(fiber)
    yield "whole"


@tool
async def deaf() -> AsyncIterator[Any]:
    """Show something, and ignore that the turn was stopped."""
    yield ToolOutput(value="half", title="Halfway")
    ENDS.append(asyncio.Event())
    RUNS.append(1)
    while not ENDS[-1].is_set():
        try:
            await ENDS[-1].wait()
        except asyncio.CancelledError:
            continue


class Reporter(Think):
    """Has all of them."""

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [walk, report, ask_first, fall, deaf]


@pytest.fixture(autouse=True)
def _nothing_progressed() -> None:
    RUNS.clear()
    ENDS.clear()


async def parts(room: Room) -> list[dict[str, Any]]:
    return [dict(part) for message in await room.transcript() for part in message["parts"] if "toolCallId" in part]


async def test_title_and_metadata_are_live_and_stay(make_room: MakeRoom) -> None:
    room = make_room("reporter")
    turn = await room.say("call tool walk {}\nsay: {result}")
    outputs = [load(r.text) for r in await read(turn.pk, 0) if '"tool-output-available"' in r.text]
    assert [(chunk["output"], chunk.get("preliminary"), chunk["toolMetadata"]) for chunk in outputs] == [
        ("a", True, {OURS: {"title": "Walking", "metadata": {"step": 1}}}),
        ("ab", True, {OURS: {"title": "Walking", "metadata": {"step": 2}}}),
        ("ab", None, {OURS: {"title": "Walking", "metadata": {"step": 2}}}),
    ]
    [part] = await parts(room)
    assert part["toolMetadata"] == {OURS: {"title": "Walking", "metadata": {"step": 2}}}
    assert text_of((await room.transcript())[-1]) == "ab"
    [row] = await db(lambda: list(ToolCallRecord.objects.filter(turn_id=turn.pk)))
    assert row.details == {"title": "Walking", "metadata": {"step": 2}}


async def test_a_report_is_a_passing_chunk_until_there_is_a_result(make_room: MakeRoom) -> None:
    room = make_room("reporter")
    turn = await room.say("call tool report {} id=one\nsay: {result}")
    chunks = [load(r.text) for r in await read(turn.pk, 0)]
    [progress] = [chunk for chunk in chunks if chunk["type"] == "data-think-progress"]
    assert progress == {
        "type": "data-think-progress",
        "data": {"toolCallId": "one", "title": "Half", "metadata": {"done": 1}},
        "transient": True,
    }
    [part] = await parts(room)
    assert (part["output"], part["toolMetadata"]) == ("done", {OURS: {"title": "Half", "metadata": {"done": 1}}})
    kinds = [part["type"] for part in (await room.transcript())[-1]["parts"]]
    assert "data-think-progress" not in kinds


async def test_a_call_that_was_approved_has_its_words(make_room: MakeRoom) -> None:
    room = make_room("reporter")
    await room.say("call tool ask_first {}\nsay: {result}")
    [asked] = await parts(room)
    await Desk(room).reply(asked["toolCallId"], is_approved=True, continues=True)
    [part] = await parts(room)
    assert (part["output"], part["toolMetadata"]) == ("paid", {OURS: {"title": "Paid 5", "metadata": {"amount": 5}}})


async def test_a_call_that_had_shown_something_runs_again_after_a_crash(make_room: MakeRoom) -> None:
    room = make_room("reporter")
    turn = await room.say("call tool fall {}\nsay: {result}")
    assert (status_of(turn), turn.fiber.attempt, RUNS) == ("completed", 2, [1, 2])
    [part] = await parts(room)
    assert (part["output"], part.get("preliminary", False)) == ("whole", False)
    assert text_of((await room.transcript())[-1]) == "whole"


async def test_a_stop_leaves_a_deaf_tool_behind(make_room: MakeRoom) -> None:
    room = make_room("reporter")

    async def runs() -> bool:
        return bool(RUNS)

    async with worker(), asyncio.timeout(30):
        admission = await room.admit("call tool deaf {} id=one\nsay: Never.")
        await until(runs)
        assert await room.handle.abort_all_requests()
        assert await room.handle.wait_until_stable(20)
        [part] = await parts(room)
        ENDS[-1].set()
    assert status_of(await room.turn(admission.turn.pk)) == "aborted"
    assert (part["state"], part["errorText"]) == ("output-error", call_texts.INTERRUPTED)
    assert part["toolMetadata"] == {OURS: {"interrupted": True}}
    assert "preliminary" not in part
