"""What the deletion of a conversation stopped, once it is back: schedules run, answers and work wait for a person."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from chat.background import rows as background_rows
from chat.background.service import restart_row
from chat.conversations.work import WorkSection, work_page
from chat.errors import FiberConflict, TurnConflict
from chat.instances.rows import find_instance
from chat.models import AgentInstance
from chat.operations.deleted import put_into_deleted, restore_instances
from chat.reads.transcripts import DELETED_CODE, transcript
from chat.turns.admission.intake import Regenerate
from chat.turns.admission.stop import cancel_turn
from chat.turns.inbox.pausing import go_on, is_paused, pause
from fibers.core.schedules.states import ScheduleStatus
from fibers.execution.recovery import sweep
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from fibers.models.fibers import KEEP_HALTED
from fibers.models.schedules import Schedule
from fibers.schedules.services import run_now
from fibers.testing import crash_after, expire_lease, run_until_idle
from tests.db.chat.turns.agents.everyday import CALLS
from tests.db.chat.turns.agents.fibering import GIVEN, nothing_scripted
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room, status_of

__all__ = ["nothing_scripted"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)


async def row_of(room: Room) -> AgentInstance:
    instance = await db(find_instance, room.key)
    assert instance is not None
    return instance


async def delete_and_restore(room: Room) -> None:
    instance = await row_of(room)
    await db(put_into_deleted, [instance])
    await run_until_idle(skip_delays=True)
    assert await db(restore_instances, room.key.owner_id, [instance.pk]) == [instance.pk]
    await run_until_idle(skip_delays=True)


async def offered(room: Room) -> Any:
    """What the end of the conversation offers to be answered: the code of its error, or nothing."""
    instance = await row_of(room)
    failed = (await db(transcript, lambda: instance)).failed
    return None if failed is None or failed.error is None else failed.error["code"]


async def test_what_waited_is_answered_once_and_in_order_when_a_person_asks(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say("say: one")
    second, third = (await room.admit("say: two")).turn, (await room.admit("say: three")).turn
    await delete_and_restore(room)
    assert [status_of(await room.turn(turn.pk)) for turn in (second, third)] == ["aborted", "aborted"]
    assert [text for _, text in await room.texts()] == ["say: one", "one", "say: two", "say: three"]  # nothing began
    assert await offered(room) == DELETED_CODE

    asked = third.input_ids[0]
    again = (await room.admit(Regenerate(message_id=asked))).turn
    with pytest.raises(TurnConflict, match="still waits"):  # from a second tab
        await room.admit(Regenerate(message_id=asked))
    await run_until_idle()
    assert [text for _, text in await room.texts()] == ["say: one", "one", "say: two", "say: three", "twothree"]
    assert (await room.turn(again.pk)).retry_of_id == third.pk
    assert await offered(room) is None


async def test_an_answer_that_was_being_written_stays_and_can_be_asked_for_again(make_room: MakeRoom) -> None:
    room = make_room()
    turn = (await room.admit('call tool add {"a": 1, "b": 2}\nsay: {result}')).turn
    with crash_after("model:0"):
        await run_fiber(turn.fiber_id)
    await delete_and_restore(room)
    await db(expire_lease, turn.fiber_id)
    await db(sweep)
    await run_until_idle(skip_delays=True)
    assert status_of(await room.turn(turn.pk)) == "aborted"
    assert [role for role, _ in await room.texts()] == ["user", "assistant"]
    assert CALLS == []
    assert await offered(room) == DELETED_CODE
    again = await room.say(Regenerate(message_id=turn.input_ids[0]))
    assert (status_of(again), again.retry_of_id) == ("completed", turn.pk)
    assert await offered(room) is None


async def test_what_a_person_had_stopped_before_is_not_offered(make_room: MakeRoom) -> None:
    room = make_room()
    turn = (await room.admit("say: one")).turn
    await db(cancel_turn, turn.pk)
    await delete_and_restore(room)
    assert await offered(room) is None


async def test_background_work_that_was_stopped_runs_again_when_a_person_asks(busy_room: Room) -> None:
    await busy_room.handle.spawn_fiber("echo", "spawned")
    await busy_room.handle.queue("echo", "queued")
    instance = await row_of(busy_room)
    await delete_and_restore(busy_room)
    assert GIVEN == []  # nothing ran by itself
    items = (await db(work_page, busy_room.key.owner_id, WorkSection.ENDED)).items
    assert [(item.status, item.verbs) for item in items] == [("cancelled", ["retry"])] * 2
    for row in await db(lambda: list(Fiber.objects.filter(scope=instance.pk).order_by("pk"))):
        await db(restart_row, row)
        await db(restart_row, row)  # twice is once: it is under way
    await run_until_idle(skip_delays=True)
    rows = await db(lambda: list(background_rows.own_work(instance.pk)))
    assert [(row.status, row.result) for row in sorted(rows, key=lambda row: str(row.result))] == [
        ("completed", "queued"),
        ("completed", "spawned"),
    ]


async def test_work_that_was_stopped_by_a_person_does_not_run_again(busy_room: Room) -> None:
    fiber_id = await busy_room.handle.spawn_fiber("echo", "spawned")
    await busy_room.handle.cancel_fiber(fiber_id)
    await delete_and_restore(busy_room)
    row = await db(lambda: Fiber.objects.get(pk=fiber_id))
    with pytest.raises(FiberConflict):
        await db(restart_row, row)


async def test_it_is_kept_until_its_conversation_may_have_come_back(busy_room: Room) -> None:
    await busy_room.handle.spawn_fiber("echo", "spawned")
    await db(put_into_deleted, [await row_of(busy_room)])

    def found_after(age: timedelta) -> bool:
        Fiber.objects.update(finished_at=timezone.now() - age)
        sweep()
        return Fiber.objects.exists()

    assert await db(found_after, KEEP_HALTED - timedelta(hours=1))
    assert not await db(found_after, KEEP_HALTED + timedelta(hours=1))


async def test_a_run_of_a_schedule_is_stopped_and_the_next_one_comes(busy_room: Room) -> None:
    schedule = await busy_room.handle.schedule(3600, "echo", "scheduled")
    fiber = await db(run_now, schedule.id)
    await delete_and_restore(busy_room)
    assert (await db(lambda: Fiber.objects.get(pk=fiber.pk))).status == "cancelled"
    row = await db(lambda: Schedule.objects.get(pk=schedule.id))
    assert row.status == ScheduleStatus.ACTIVE
    assert row.next_at is not None
    assert row.next_at > timezone.now()


async def test_a_schedule_whose_zone_is_gone_holds_no_restore_up(busy_room: Room) -> None:
    schedule = await busy_room.handle.schedule("0 9 * * *", "echo", "scheduled", zone="UTC")
    instance = await row_of(busy_room)
    await db(put_into_deleted, [instance])
    await db(lambda: Schedule.objects.filter(pk=schedule.id).update(zone="Mars/Base"))
    assert await db(restore_instances, busy_room.key.owner_id, [instance.pk]) == [instance.pk]
    assert (await db(lambda: Schedule.objects.get(pk=schedule.id))).status == ScheduleStatus.PAUSED


async def test_an_agent_that_was_paused_is_paused_still(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say("say: one")
    await db(pause, await row_of(room))
    await delete_and_restore(room)
    assert await db(is_paused, await row_of(room))
    waiting = await room.say("say: two")
    assert status_of(waiting) == "pending"
    await db(go_on, await row_of(room))
    await run_until_idle()
    assert status_of(await room.turn(waiting.pk)) == "completed"
