"""Programs that bring tools for a turn, and workers, that end while a call waits: nothing runs twice or hangs."""

import asyncio
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from chat.testing import worker
from chat.think import (
    tool,
    with_timeout,
)
from chat.turns.tools.caller_calls import CallerTools, serve_calls
from fibers.execution import recovery
from fibers.models import Fiber
from fibers.testing import crash_after, run_until_idle
from tests.db.chat.turns.agents.calling import (
    FETCH,
    NOTED,
    RULES,
    chat,
    fetch,
    no_rules,
    said,
    words,
)
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, status_of, text_of

__all__ = ["no_rules"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)


async def let_time_pass() -> None:
    """Have the sweeper find that the first wait is over."""
    await db(Fiber.objects.filter(status="parked").update, parked_until=Now() - timedelta(seconds=1))
    await db(recovery.sweep)


async def test_the_call_of_a_caller_that_has_died_fails_in_time(make_room: MakeRoom) -> None:
    room = make_room("called")
    declared = CallerTools({"tools": [with_timeout(fetch, 20)]}).declarations
    turn = await room.say(words(FETCH), options={"caller_tools": declared})  # its caller dies with this line
    assert turn.fiber.status == "parked"
    await db(recovery.sweep)
    assert (await room.turn(turn.pk)).fiber.status == "parked"
    await let_time_pass()
    await run_until_idle(skip_delays=True)
    assert status_of(await room.turn(turn.pk)) == "completed"
    [output] = [text for kind, _ok, text in NOTED if kind == "after"]
    assert "did not answer within 50 s" in output
    assert "Whether the call had an effect is not known." in output


async def test_a_caller_that_leaves_stops_its_tool_and_not_the_turn(make_room: MakeRoom) -> None:
    begun = asyncio.Event()

    @tool(name="fetch")
    async def never() -> None:
        """Take for ever."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            NOTED.append("stopped")

    room = make_room("called")
    async with worker(), asyncio.timeout(30):
        chatting = asyncio.create_task(room.handle.chat(FETCH, tools=[never]))
        await begun.wait()
        chatting.cancel()
        await asyncio.gather(chatting, return_exceptions=True)
        assert NOTED == ["stopped"]
        await let_time_pass()
        assert await room.handle.wait_until_stable()
    [_user, answer] = await room.transcript()
    assert "did not answer" in text_of(answer)


async def test_a_turn_that_is_stopped_stops_the_callers_tool(make_room: MakeRoom) -> None:
    signal = asyncio.Event()

    @tool(name="fetch")
    async def never() -> None:
        """Take for ever."""
        signal.set()
        try:
            await asyncio.Event().wait()
        finally:
            NOTED.append("stopped")

    result = await chat(make_room("called"), FETCH, tools=[never], signal=signal)
    assert (result.status.value, NOTED) == ("aborted", ["stopped"])


async def test_a_worker_killed_between_the_callers_answer_and_its_record_runs_nothing_twice(
    make_room: MakeRoom,
) -> None:
    """Attempt 2 has the answer in its journal and dies before the call is recorded; attempt 3 finds it there."""
    RULES["dies in"] = 2
    room = make_room("called")
    async with asyncio.timeout(30):
        chatting = asyncio.create_task(room.handle.chat(FETCH, tools=[fetch]))
        while not chatting.done():
            await run_until_idle(skip_delays=True)
            await asyncio.sleep(0.01)
        result = await chatting
    assert NOTED == ["fetch one one 1", "died", ("after", True, "the report")]
    assert said(result) == "It says the report."


@pytest.mark.parametrize("step", ["model:0", "call:one"])
async def test_a_worker_killed_beside_a_call_runs_nothing_twice(make_room: MakeRoom, step: str) -> None:
    room = make_room("called")
    with crash_after(step):
        async with asyncio.timeout(30):
            chatting = asyncio.create_task(room.handle.chat(FETCH, tools=[fetch]))
            while not chatting.done():
                await run_until_idle(skip_delays=True)
                await asyncio.sleep(0.01)
            result = await chatting
    assert [noted for noted in NOTED if isinstance(noted, str)] == ["fetch one one 1"]
    assert said(result) == "It says the report."


async def test_of_two_callers_that_answer_one_call_the_first_counts(make_room: MakeRoom) -> None:
    room, both = make_room("called"), asyncio.Barrier(2)

    def program(name: str) -> CallerTools:
        @tool(name="fetch")
        async def run() -> str:
            """Answer when the other one has the call, too."""
            NOTED.append(name)
            await both.wait()
            return name

        return CallerTools({"tools": [run]})

    first, second = program("first"), program("second")
    admitted = (await room.admit(words(FETCH), options={"caller_tools": first.declarations})).turn
    serving = [asyncio.create_task(serve_calls(room.key, admitted, each)) for each in (first, second)]
    try:
        async with worker(), asyncio.timeout(30):
            assert await room.handle.wait_until_stable()
    finally:
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
    assert sorted(noted for noted in NOTED if isinstance(noted, str)) == ["first", "second"]
    [counted] = [noted[2] for noted in NOTED if isinstance(noted, tuple)]
    assert text_of((await room.transcript())[-1]) == f"It says {counted}."
    assert counted in {"first", "second"}
