"""Background work, queues, schedules and runs, as their conversation is cleared, archived, pruned, forked or goes."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chat.conversations.fork import fork_instance
from chat.conversations.pruning import PruneRule, prune_by_rule
from chat.instances.rows import find_instance
from chat.models import AgentInstance, Turn
from chat.models.runs import AgentRun
from chat.operations.removal import delete_instance
from fibers.core.schedules.states import ScheduleStatus
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from fibers.models.schedules import Schedule
from fibers.schedules.services import run_now
from fibers.testing import run_until_idle
from sessions_app.models import Message, Session
from tests.db.chat.turns.agents.fibering import SCRIPTS, Busy
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)

STARTED: dict[str, asyncio.Event] = {}
RAN: list[str] = []


class Lasting(Busy):
    """Has work of every kind."""

    async def note(self, payload: Any) -> None:
        RAN.append(payload)

    async def hold(self, payload: Any, occurrence: Any) -> None:
        STARTED["now"].set()
        await asyncio.sleep(60)  # until its conversation ends
        RAN.append("held to the end")


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()
    SCRIPTS.clear()
    STARTED["now"] = asyncio.Event()


@pytest.fixture
def lasting_room(make_room: MakeRoom) -> Room:
    return make_room("lasting")


async def furnish(room: Room) -> AgentInstance:
    """A conversation with work, a queue, a schedule and a run under way."""
    await room.handle.spawn_fiber("note", "spawned")
    await room.handle.queue("note", "queued")
    await room.handle.schedule(3600, "note", "scheduled")
    instance = await db(find_instance, room.key)
    assert instance is not None
    await db(lambda: AgentRun.objects.create(parent=instance, owner_id=instance.owner_id, run_id="r", agent="lasting"))
    return instance


def left() -> dict[str, int]:
    """What there is of each kind that has not ended."""
    return {
        "fibers": Fiber.objects.filter(finished_at=None).count(),
        "schedules": Schedule.objects.filter(status=ScheduleStatus.ACTIVE).count(),
        "runs": AgentRun.objects.filter(finished_at=None).count(),
    }


def owner_of(instance: AgentInstance) -> User:
    owner = AgentInstance.objects.select_related("owner").get(pk=instance.pk).owner
    assert isinstance(owner, User)
    return owner


ALL = {"fibers": 2, "schedules": 1, "runs": 1}
NOTHING = {"fibers": 0, "schedules": 0, "runs": 0}


async def test_clearing_forgets_the_messages_and_leaves_the_work(lasting_room: Room) -> None:
    await furnish(lasting_room)
    await lasting_room.handle.clear()
    assert await db(left) == ALL
    await run_until_idle()
    assert sorted(RAN) == ["queued", "spawned"]


async def test_archiving_stops_nothing(lasting_room: Room) -> None:
    instance = await furnish(lasting_room)
    await db(lambda: AgentInstance.objects.filter(pk=instance.pk).update(archived_at=timezone.now()))
    assert await db(left) == ALL
    await run_until_idle()
    assert sorted(RAN) == ["queued", "spawned"]


async def test_pruning_leaves_conversations_with_work_or_schedules(lasting_room: Room) -> None:
    instance = await furnish(lasting_room)
    long_ago = timezone.now() - timedelta(days=400)
    await db(lambda: AgentInstance.objects.update(archived_at=long_ago, active_at=long_ago))
    rule = PruneRule(days=30)
    assert sum(await db(lambda: list(prune_by_rule(rule, timezone.now())))) == 0  # its work
    await run_until_idle()
    assert sum(await db(lambda: list(prune_by_rule(rule, timezone.now())))) == 0  # its schedule
    (schedule,) = await lasting_room.handle.get_schedules()
    assert await lasting_room.handle.cancel_schedule(schedule.id)
    assert sum(await db(lambda: list(prune_by_rule(rule, timezone.now())))) == 1
    assert await db(lambda: AgentInstance.objects.filter(pk=instance.pk).count()) == 0


async def test_a_fork_has_the_messages_and_none_of_the_work(lasting_room: Room) -> None:
    await lasting_room.handle.add_messages("Hello.")
    instance = await furnish(lasting_room)
    message = await db(lambda: Message.objects.get(session_id=instance.session_id))
    before = await db(left)
    fork = await db(fork_instance, instance, message.message_id)
    assert await db(left) == before
    assert await db(lambda: Fiber.objects.filter(scope=fork.pk).count()) == 0
    assert await db(lambda: Schedule.objects.filter(scope=fork.pk).count()) == 0


async def test_deleting_ends_everything_even_a_scheduled_run_under_way(lasting_room: Room) -> None:
    instance = await furnish(lasting_room)
    schedule = await lasting_room.handle.schedule(3600, "hold")
    fiber = await db(run_now, schedule.id)
    task = asyncio.create_task(run_fiber(fiber.pk))
    async with asyncio.timeout(10):
        await STARTED["now"].wait()
    assert await db(delete_instance, instance)
    await task
    await run_until_idle()
    assert await db(left) == NOTHING
    assert RAN == []
    assert (await db(lambda: Fiber.objects.get(pk=fiber.pk))).status == "cancelled"


async def test_nothing_runs_for_a_user_who_is_deleted_and_nothing_of_theirs_stays(lasting_room: Room) -> None:
    await lasting_room.handle.add_messages("Hello.")
    instance = await furnish(lasting_room)
    owner = await db(owner_of, instance)
    schedule = await lasting_room.handle.schedule(3600, "hold")
    fiber = await db(run_now, schedule.id)
    task = asyncio.create_task(run_fiber(fiber.pk))
    async with asyncio.timeout(10):
        await STARTED["now"].wait()
    turn = (await lasting_room.admit("Hello?")).turn  # waits for a worker
    await db(owner.delete)
    await task
    await run_until_idle(skip_delays=True)
    assert await db(left) == NOTHING
    assert RAN == []
    assert await db(lambda: Turn.objects.filter(pk=turn.pk).count()) == 0
    assert await db(lambda: (AgentInstance.objects.count(), Session.objects.count(), Message.objects.count())) == (
        0,
        0,
        0,
    )
    assert await db(lambda: set(Fiber.objects.values_list("owner_id", flat=True))) <= {None}


async def test_work_of_others_goes_on_when_a_user_is_deleted(lasting_room: Room, make_room: MakeRoom) -> None:
    await furnish(lasting_room)
    other = await db(lambda: User.objects.create_user("carol"))
    await db(lambda: Fiber.objects.create(name="other", payload={}, owner=other))
    before = await db(left)
    carol_only = {**before, "fibers": before["fibers"] - 1}
    await db(other.delete)
    assert await db(left) == carol_only
    await run_until_idle()
    assert sorted(RAN) == ["queued", "spawned"]
