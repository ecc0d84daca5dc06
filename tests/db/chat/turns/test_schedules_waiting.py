"""Runs of schedules whose agent, or whose method, a deploy took away: they wait for the one that brings it back."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from chat.agent import declared
from chat.conversations.pruning import PruneRule, prune_by_rule
from chat.models import AgentInstance
from chat.schedules.outcomes import WAITS_FOR_DEPLOY, runs_of
from chat.think import Think
from fibers.core.states import METHOD_MISSING, FiberStatus
from fibers.errors import ScheduleInvalid
from fibers.models import Fiber
from fibers.models.schedules import Schedule, ScheduleRun
from fibers.schedules import services
from fibers.schedules.firing import prune_ended
from fibers.selectors import without_function
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.planning import RAN, Planner, no_tasks, rows, run_due
from thinkproject.kernel.aio import db

from .conftest import Room

__all__ = ["no_tasks"]  # a fixture


@contextmanager
def deployed(**classes: type[Think] | None) -> Iterator[None]:
    """Workers serve these agents instead, by route; those that are `None` are gone."""
    before = dict(declared.classes)
    try:
        for route, each in classes.items():
            declared.classes.pop(route)
            if each is not None:
                declared.classes[route] = each
        yield
    finally:
        declared.classes.clear()
        declared.classes.update(before)


class Former(Think, abstract=True):
    """The planner of a version that cannot remind."""

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_scheduled_tasks(self) -> Any:
        return Planner.tasks


async def lie_for_a_minute() -> None:
    """What waits has waited for so long that a sweep says why."""
    await db(lambda: Fiber.objects.update(available_at=F("available_at") - timedelta(minutes=1)))
    await run_until_idle(skip_delays=True)


@pytest.mark.parametrize("former", [Former, None])
async def test_a_run_waits_for_the_method_that_a_deploy_brings_back(
    planner_room: Room, former: type[Think] | None
) -> None:
    made = await planner_room.handle.schedule(60, "remind", "tea")
    with deployed(planner=former):
        await run_due(made)
        await lie_for_a_minute()
        [waiting] = await db(lambda: list(Fiber.objects.all()))
        assert (waiting.status, waiting.reason, waiting.attempt) == ("pending", METHOD_MISSING, 0)
        assert ("chat.scheduled_run:planner.remind", 1) in await db(without_function)
        [shown] = await db(runs_of, made.id)
        assert (shown.status, shown.error) == ("waiting", str(WAITS_FOR_DEPLOY))
        await db(lambda: Schedule.objects.update(updated_at=Now() - timedelta(days=30)))
        assert await db(prune_ended) == 0  # it was due once: it stays as long as its run is to come
    await run_until_idle(skip_delays=True)
    assert [(name, payload) for name, payload, _occurrence in RAN] == [("remind", "tea")]
    done = await db(Fiber.objects.get)
    assert (done.status, done.attempt, done.retries) == (FiberStatus.COMPLETED, 1, 0)
    assert await db(prune_ended) == 1


@pytest.mark.parametrize("can_overlap", [False, True])
async def test_what_was_missed_while_the_method_was_gone_runs_once(planner_room: Room, can_overlap: bool) -> None:
    made = await planner_room.handle.schedule_every(60, "remind", "tea")
    await db(lambda: Schedule.objects.update(can_overlap=can_overlap, max_run_seconds=1))
    with deployed(planner=Former):
        await run_due(made)
        await lie_for_a_minute()
        await db(
            lambda: ScheduleRun.objects.update(created_at=Now() - timedelta(hours=9))
        )  # longer than a run may take
        for _ in range(3):
            await run_due(made)
    await run_until_idle(skip_delays=True)
    assert len(RAN) == 1
    await run_due(made)
    assert len(RAN) == 2
    assert (await db(Schedule.objects.get)).skipped == 0


async def test_a_prompt_waits_for_the_agent_alone(planner_room: Room) -> None:
    made = await planner_room.handle.schedule(60, prompt="say: hello")
    with deployed(planner=None):
        await run_due(made)
        await lie_for_a_minute()
        assert (await db(Fiber.objects.get)).reason == METHOD_MISSING
    with deployed(planner=Former):
        await run_until_idle(skip_delays=True)
    assert (await db(lambda: Fiber.objects.get(name="chat.scheduled_run:planner"))).status == FiberStatus.COMPLETED


async def test_a_declared_task_waits_for_the_agent(planner_room: Room) -> None:
    Planner.tasks = {"tidy": {"schedule": "every 10 minutes", "handler": "sweep_up"}}
    await planner_room.admit("say: hello")
    await run_until_idle()
    [task] = await db(rows)
    with deployed(planner=None):
        await run_due(task)
        await lie_for_a_minute()
        assert RAN == []
    await run_until_idle(skip_delays=True)
    assert [name for name, _occurrence in RAN] == ["sweep_up"]


async def test_cancelling_a_schedule_stops_the_run_that_waits_for_its_method(planner_room: Room) -> None:
    made = await planner_room.handle.schedule_every(60, "remind")
    with deployed(planner=Former):
        await run_due(made)
        assert await planner_room.handle.cancel_schedule(made.id)
        stopped = await db(Fiber.objects.get)
        assert (stopped.status, stopped.reason) == (FiberStatus.CANCELLED, services.CANCELLED)
    await run_until_idle()
    assert RAN == []


async def test_pruning_leaves_a_conversation_whose_run_waits_for_its_method(planner_room: Room) -> None:
    made = await planner_room.handle.schedule(60, "remind")
    with deployed(planner=Former):
        await run_due(made)
        long_ago = timezone.now() - timedelta(days=400)
        await db(lambda: AgentInstance.objects.update(archived_at=long_ago, active_at=long_ago))
        assert sum(await db(lambda: list(prune_by_rule(PruneRule(days=30), timezone.now())))) == 0
    await run_until_idle(skip_delays=True)
    assert len(RAN) == 1
    assert sum(await db(lambda: list(prune_by_rule(PruneRule(days=30), timezone.now())))) == 1


async def test_names_that_are_too_long_together_cannot_be_scheduled(planner_room: Room) -> None:
    long_name = "m" * 190
    setattr(Planner, long_name, Planner.remind)
    try:
        with pytest.raises(ScheduleInvalid):
            await planner_room.handle.schedule(60, long_name)
    finally:
        delattr(Planner, long_name)
