"""Calls that are rows of a developer's table: claimed once, run where the tools are, settled once."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group

from chat.crashing.points import Course, Point
from chat.think import tool
from fibers.effects.looking import look
from fibers.effects.registered import effects
from fibers.models import Fiber
from fibers.testing import run_effects
from tests.budget import examples
from tests.db.races import together
from tests.desk_calls import DeskCall, desk_table, waiting
from tools_app.core.tool import ToolContext
from tools_app.errors import ToolDeclarationInvalid
from tools_app.row_calls import RowColumns, create_row_call_effect

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _desk(settings: Any, transactional_db: None) -> Iterator[None]:
    settings.THINK_FIBER_DISPATCH = "manual"
    settings.THINK_FIBER_MAX_RECOVERIES = 100
    with desk_table():
        yield
        for effect in effects():
            asyncio.run(effect.dispose())


@tool
async def search(query: str, context: ToolContext) -> dict[str, str]:
    """Search. Each run is a row, whose name is unique: a second run under another key would be seen."""
    await Group.objects.aget_or_create(name=f"{query} {context.idempotency_key}")
    return {"found": query}


@tool(reruns=False)
async def send(to: str) -> str:
    """Send a letter, which cannot be taken back."""
    await Group.objects.acreate(name=f"letter {await Group.objects.acount()} to {to}")
    return "sent"


async def row(name: str, **args: Any) -> DeskCall:
    return await DeskCall.objects.acreate(name=name, args=args)


async def ended(call: DeskCall) -> tuple[str, Any, str]:
    await call.arefresh_from_db()
    return call.status, call.result, call.error


async def test_each_call_runs_and_is_settled_in_its_row() -> None:
    create_row_call_effect("desk.calls", waiting, tools=[search, send])
    good, wrong, unknown = await row("search", query="tea"), await row("search", count=3), await row("brew")
    await run_effects()
    assert await ended(good) == ("completed", {"found": "tea"}, "")
    assert (await ended(wrong))[0] == (await ended(unknown))[0] == "failed"
    assert "query" in (await ended(wrong))[2]
    assert "brew" in (await ended(unknown))[2]
    assert await Group.objects.acount() == 1


async def test_an_effect_leaves_the_calls_of_other_tools_to_others() -> None:
    """Where the tools are in several places, each takes the rows of its own by the name."""
    create_row_call_effect("desk.search", lambda: waiting().filter(name="search"), tools=[search])
    await row("search", query="tea")
    letter = await row("send", to="Ann")
    await run_effects()
    assert (await ended(letter))[0] == "pending"


async def test_columns_of_other_names_and_own_writers() -> None:
    said: list[Any] = []
    create_row_call_effect(
        "desk.own",
        waiting,
        tools=[search],
        columns=RowColumns(name="error", args="result"),
        on_executing=lambda call: bool(DeskCall.objects.filter(pk=call.pk).update(status="executing")),
        on_complete=lambda call, result: said.append((call.pk, result)),
        on_error=lambda call, text: said.append((call.pk, text)),
    )
    call = await DeskCall.objects.acreate(error="search", result={"query": "tea"})
    await run_effects()
    assert said == [(call.pk, {"found": "tea"})]


async def test_who_does_not_get_the_claim_runs_nothing_and_a_late_result_is_dropped() -> None:
    @tool
    async def slow(query: str) -> str:
        """Answer when the call has been cancelled."""
        await DeskCall.objects.filter(name="slow").aupdate(status="cancelled")
        return query

    def refuse(_call: Any) -> bool:
        return False

    create_row_call_effect("desk.slow", waiting, tools=[slow])
    call = await row("slow", query="tea")
    await run_effects()
    assert await ended(call) == ("cancelled", None, "")
    await asyncio.gather(*(effect.dispose() for effect in effects()))
    create_row_call_effect("desk.refused", waiting, tools=[search], on_executing=refuse)
    other = await row("search", query="tea")
    await run_effects()
    assert (await ended(other))[0] == "pending"
    assert not await Group.objects.aexists()


async def test_a_writer_that_fails_is_tried_again_without_the_tool_and_then_the_row_gets_the_error() -> None:
    tries: list[int] = []

    def complete(call: Any, _result: Any) -> None:
        tries.append(call.pk)
        raise ValueError("the disk is full")

    create_row_call_effect("desk.full", waiting, tools=[search], on_complete=complete, max_retries=2)
    call = await row("search", query="tea")
    await run_effects(skip_delays=True)
    assert len(tries) == 3
    assert await Group.objects.acount() == 1
    assert (await ended(call))[0] == "failed"
    assert "stored" in (await ended(call))[2]


def test_many_processes_with_the_same_tool_run_each_call_once() -> None:
    effect = create_row_call_effect("desk.many", waiting, tools=[search])
    DeskCall.objects.bulk_create([DeskCall(name="search", args={"query": f"q{number}"}) for number in range(100)])
    assert not together(*[lambda: look(effect)] * 8)
    asyncio.run(run_effects())
    assert Group.objects.count() == Fiber.objects.count() == DeskCall.objects.filter(status="completed").count() == 100


async def played(deaths: list[Point]) -> Course:
    course = Course(deaths)
    with course.watched():
        await row("search", query="tea")
        await row("send", to="Ann")
        await run_effects(skip_delays=True)
    return course


async def test_a_process_that_dies_anywhere_neither_loses_nor_doubles_a_call() -> None:
    create_row_call_effect("desk.dies", waiting, tools=[search, send])
    points = (await played([])).passed
    assert sum(point.key.startswith("tool:") for point in points) == 4
    step = -(-len(points) // examples(60))
    for point in points[::step]:
        for model in (DeskCall, Fiber, Group):
            await model._default_manager.all().adelete()
        course = await played([point])
        found = [each async for each in DeskCall.objects.order_by("name").values_list("name", "status", "result")]
        assert found[0] == ("search", "completed", {"found": "tea"}), str(point)
        letters = await Group.objects.filter(name__startswith="letter").acount()
        was_cut = found[1][1] == "failed"  # its outcome is unknown, and it was not sent again
        assert letters <= 1, str(point)
        assert was_cut or (found[1][1:] == ("completed", "sent") and letters == 1), str(point)
        assert not was_cut or course.died, str(point)


def test_a_table_that_cannot_be_one_of_calls_is_refused() -> None:
    with pytest.raises(ToolDeclarationInvalid, match=r"RowColumns\(name=\.\.\.\)"):
        create_row_call_effect("desk.wrong", waiting, tools=[search], columns=RowColumns(name="tool"))
    with pytest.raises(ToolDeclarationInvalid, match="status"):
        create_row_call_effect("desk.wrong", waiting, tools=[search], columns=RowColumns(status="state"))
