"""Detached runs: the call returns at once; budgets end what no one waits for, and the end is reported once."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now

from chat.agent import declared
from chat.models import StreamSegment, Turn
from chat.models.runs import AgentRun
from chat.think import Detached, Tool
from fibers.execution import recovery
from fibers.models import Fiber, FiberStep
from fibers.testing import crash_after, run_until_idle
from tests.db.chat.turns.agents.delegating import ENDED, Chief, Errand, call, nothing_delegated, only_run, turns_of
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room, status_of, text_of

__all__ = ["nothing_delegated"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)

HOLD = "call tool hold {} id=two\nsay: It is {result}."


async def pass_time(span: timedelta) -> None:
    """Let everything be this much older, as the database's clock sees it, and the sweeper look."""

    def shift() -> None:
        for model, *names in (
            (AgentRun, "created_at", "progress_at"),
            (Turn, "accepted_at", "started_at", "finished_at"),
            (StreamSegment, "created_at"),
            (FiberStep, "created_at"),
            (Fiber, "created_at", "parked_until", "available_at"),
        ):
            for name in names:
                model.objects.exclude(**{name: None}).update(**{name: F(name) - span})
        recovery.sweep(prune=False)

    await db(shift)
    await run_until_idle()


async def start(room: Room, task: str = HOLD, tool: str = "later") -> Turn:
    turn = await room.say(f"{call(tool, task)}\nsay: {{result}}")
    assert status_of(turn) == "completed"
    return turn


async def test_the_call_returns_at_once_and_a_method_of_the_parent_gets_the_end(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await start(room)
    run = await only_run()
    assert '"status":"running"' in text_of((await room.transcript())[-1]).replace(" ", "")
    assert run.outcome is None
    assert await room.handle.sub_agent(Errand, run.run_id).answer_wait("two", "blue", wait="question")
    await run_until_idle()
    [ended] = ENDED
    assert ended.run_id == run.run_id
    assert ended.outcome is not None
    assert ended.outcome["summary"] == "It is blue."
    assert not await db(Fiber.objects.filter(status__in=["pending", "running", "parked"]).exists)


@pytest.mark.parametrize("step", [None, "hooks"])
async def test_the_end_wakes_the_parent_once(make_room: MakeRoom, step: str | None) -> None:
    room = make_room("chief")
    await start(room, tool="wake")
    run = await only_run()
    await room.handle.sub_agent(Errand, run.run_id).answer_wait("two", "blue", wait="question")
    with crash_after(step or "none"):
        await run_until_idle()
    messages = await room.transcript()
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    assert "It is blue." in text_of(messages[2])
    assert messages[2]["metadata"]["agentRun"]["runId"] == run.run_id
    assert len(await turns_of(room, "chief")) == 2


async def test_a_parent_that_is_woken_reads_what_a_run_that_failed_had_found(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await start(room, "say: Half of it is here.\ncall tool hold {} id=two\nsay:", tool="wake")
    await room.handle.sub_agent(Errand, (await only_run()).run_id).answer_wait("two", "blue", wait="question")
    await run_until_idle()
    report = text_of((await room.transcript())[2])
    assert "has failed (error)" in report
    assert report.endswith("Half of it is here.")


async def test_a_run_without_progress_ends_as_interrupted_and_its_child_goes_on(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await start(room, "say: Half of it is here.\ncall tool hold {} id=two\nsay: It is {result}.")
    run = await only_run()
    await pass_time(timedelta(hours=2))
    assert (await only_run()).outcome is None  # it waits for an answer: that is not idle

    def let_it_hang() -> None:
        [turn] = Turn.objects.filter(instance__agent="errand")
        Fiber.objects.filter(pk=turn.fiber_id).update(status="pending", available_at=Now() + timedelta(days=9))

    await db(let_it_hang)
    await pass_time(timedelta(minutes=30))
    assert (await only_run()).outcome is None
    await pass_time(timedelta(hours=2))
    outcome = (await only_run()).outcome
    assert outcome is not None
    assert (outcome["status"], outcome["reason"], outcome["childStillRunning"]) == ("interrupted", "no-progress", True)
    assert outcome["summary"] == "Half of it is here."
    assert [each.run_id for each in ENDED] == [run.run_id]


async def test_a_run_beyond_its_budget_ends_as_interrupted(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await start(room)
    for _ in range(3):
        await pass_time(timedelta(hours=7))
    assert (await only_run()).outcome is None
    await pass_time(timedelta(hours=4))
    outcome = (await only_run()).outcome
    assert outcome is not None
    assert (outcome["status"], outcome["reason"]) == ("interrupted", "budget-exceeded")
    assert len(ENDED) == 1
    run = await only_run()  # the child still ends; that is no second end of the run
    await room.handle.sub_agent(Errand, run.run_id).answer_wait("two", "blue", wait="question")
    await run_until_idle()
    assert len(ENDED) == 1
    assert (await only_run()).outcome == outcome


class Patient(Chief):
    """Delegates for weeks."""

    def get_tools(self) -> list[Tool]:
        limits = Detached(budget_seconds=30 * 86400, no_progress_seconds=3600, on_end="errand_ended")
        return [self.agent_tool(Errand, name="weeks", detached=limits)]


async def test_a_delegation_of_21_days_ends_once_across_two_upgrades(make_room: MakeRoom) -> None:
    room = make_room("patient")
    await start(room, tool="weeks")
    run = await only_run()
    original = declared.classes["errand"]
    try:
        for week in range(3):
            await pass_time(timedelta(days=7))
            declared.classes["errand"] = type("Errand", (original,), {"version": week}, abstract=True)
        assert (await only_run()).outcome is None
        await room.handle.sub_agent(Errand, run.run_id).answer_wait("two", "blue", wait="question")
        await run_until_idle()
    finally:
        declared.classes["errand"] = original
    [ended] = ENDED
    assert ended.outcome is not None
    assert ended.outcome["summary"] == "It is blue."
    assert len(await turns_of(room, "errand")) == 1
