"""A row of a developer's table that enters a queryset is answered by an agent, once."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from chat.agent.base import InstanceKey
from chat.crashing.points import Course, Point
from chat.effects import create_generation_effect
from chat.instance.handle import AgentHandle, ChatResult
from chat.models import AgentInstance, Turn
from fibers.effects.registered import effects
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from fibers.services import expire_wait
from fibers.testing import run_effects, run_until_idle
from tests.budget import examples
from tests.desk_calls import DeskCall, desk_table, waiting
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _questions(settings: Any, transactional_db: None) -> Iterator[None]:
    settings.THINK_FIBER_MAX_RECOVERIES = 100
    with desk_table():
        yield
        for effect in effects():
            asyncio.run(effect.dispose())


def change(row: DeskCall, status: str, **values: Any) -> None:
    DeskCall.objects.filter(pk=row.pk).update(status=status, **values)


def declare(room: Room) -> None:
    """Each row has a conversation of its own, with the agent of the room."""
    create_generation_effect(
        "desk.answer",
        waiting,
        instance=lambda row: InstanceKey(owner_id=room.key.owner_id, agent=room.key.agent, name=f"row-{row.name}"),
        prompt=lambda row: row.args["prompt"],
        on_generating=lambda row: change(row, "generating"),
        on_complete=lambda row, result: change(row, "done", result=result.content),
        on_error=lambda row, result: change(row, "failed", error=result.error),
        on_cancelled=lambda row, _result: change(row, "cancelled"),
    )


async def ask(name: str, prompt: str) -> DeskCall:
    return await DeskCall.objects.acreate(name=name, args={"prompt": prompt})


async def found(row: DeskCall) -> tuple[str, Any]:
    await row.arefresh_from_db()
    return row.status, row.result


async def settle() -> None:
    """Run everything; what a fiber waits for is over at once."""
    for _ in range(8):
        await run_effects(skip_delays=True)
        await db(_end_waits)


def _end_waits() -> None:
    for fiber_id, waits in Fiber.objects.filter(status="parked").values_list("pk", "waits"):
        for wait in waits:
            expire_wait(fiber_id, wait["key"])


async def test_a_row_is_answered_and_meanwhile_no_worker_is_held(make_room: MakeRoom) -> None:
    room = make_room()
    declare(room)
    row = await ask("one", "say: Blue, for the sky.")
    await run_until_idle()
    assert await found(row) == ("generating", None)
    assert await Fiber.objects.filter(name="effect:desk.answer", status="parked").acount() == 1
    await settle()
    assert await found(row) == ("done", "Blue, for the sky.")
    assert await Turn.objects.acount() == 1
    handle = AgentHandle(InstanceKey(owner_id=room.key.owner_id, agent=room.key.agent, name="row-one"))
    assert [message["role"] for message in await handle.messages()] == ["user", "assistant"]


async def test_a_turn_that_fails_and_one_that_is_stopped_are_told_apart(make_room: MakeRoom) -> None:
    room = make_room()
    declare(room)
    broken, stopped = await ask("broken", "error 400"), await ask("stopped", "say: never")
    for fiber in [fiber async for fiber in Fiber.objects.filter(name="effect:desk.answer")]:
        await run_fiber(fiber.pk)  # asks for the turn, which is stopped before it begins
    handle = AgentHandle(InstanceKey(owner_id=room.key.owner_id, agent=room.key.agent, name="row-stopped"))
    assert await handle.cancel_submission((await handle.list_submissions())[0].id)
    await settle()
    assert (await found(broken))[0] == "failed"
    assert broken.error
    assert (await found(stopped))[0] == "cancelled"


async def played(deaths: list[Point]) -> Course:
    course = Course(deaths)
    with course.watched():
        await ask("one", "say: Blue.")
        await settle()
    return course


async def test_a_process_that_dies_anywhere_neither_loses_nor_doubles_an_answer(make_room: MakeRoom) -> None:
    declare(make_room())
    points = (await played([])).passed
    step = -(-len(points) // examples(40))
    for point in points[::step]:
        await db(_clear)
        course = await played([point])
        assert course.died == [point]
        row = await DeskCall.objects.aget()
        assert (row.status, row.result) == ("done", "Blue."), str(point)
        assert await Turn.objects.acount() == 1, str(point)


def _clear() -> None:
    for model in (DeskCall, Turn, AgentInstance, Fiber):
        model._default_manager.all().delete()


def test_the_content_of_an_answer_is_its_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "reasoning", "text": "x"}, {"type": "text", "text": "b"}]
    message: Any = {"id": "m", "role": "assistant", "parts": parts}
    result: Any = ChatResult(request_id="r", turn_id="t", status="completed", message=message)  # type: ignore[arg-type]
    assert result.content == "ab"
