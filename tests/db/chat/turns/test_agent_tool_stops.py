"""Stops: what stops a parent stops what works for it, at every depth, and each run ends as aborted."""

import json
from datetime import timedelta
from functools import partial

import pytest
from django.db.models.functions import Now

from chat.instances.rows import find_instance
from chat.instances.waiting import wait_until
from chat.models import AgentInstance, Turn
from chat.operations.removal import delete_instance
from chat.streams.reader import read
from fibers.execution import recovery
from fibers.models import Fiber
from fibers.services import resume_fiber
from fibers.testing import crash_after, run_until_idle, worker
from tests.db.chat.turns.agents.delegating import WORKED, Errand, call, nothing_delegated, only_run, runs, turns_of
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room, status_of, text_of

__all__ = ["nothing_delegated"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)

HOLD = "say: I begin.\ncall tool hold {} id=two\nsay: {result}"


async def under_way(room: Room, *, levels: int = 1, tool: str = "errand") -> Turn:
    """A turn whose child, or whose child's child, waits."""
    script = call(tool, HOLD)
    if levels == 2:
        script = call("middle", call("errand", HOLD, "deep"))
    turn = await room.say(f"{script}\nsay: {{result}}")
    assert turn.fiber.status == "parked"
    return turn


async def goes_on() -> bool:
    return await db(Fiber.objects.filter(status__in=["pending", "running", "parked"]).exists)


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("how", ["stop", "abort_all", "clear"])
async def test_a_stop_of_the_parent_stops_all_below_it(make_room: MakeRoom, levels: int, how: str) -> None:
    room = make_room("chief")
    turn = await under_way(room, levels=levels)
    if how == "stop":
        assert await room.handle.cancel_chat(turn.request_id)
    elif how == "abort_all":
        assert await room.handle.abort_all_requests()
    else:
        await room.handle.clear()
    await run_until_idle()
    assert not await goes_on()
    assert [(run.outcome or {})["status"] for run in await runs()] == ["aborted"] * levels
    assert [status_of(turn) for turn in await turns_of(room, "errand")] == ["aborted"]


async def test_the_partial_answer_of_a_stopped_child_is_kept(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await under_way(room)
    run = await only_run()
    await room.handle.abort_all_requests()
    await run_until_idle()
    messages = await room.handle.sub_agent(Errand, run.run_id).messages()
    assert text_of(messages[-1]) == "I begin."
    assert (run.agent, ((await only_run()).outcome or {})["reason"]) == ("errand", "parent-stopped")


async def test_a_crash_while_stopping_stops_all_the_same(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await under_way(room, levels=2)
    with crash_after("final", times=2):
        await room.handle.abort_all_requests()
        await run_until_idle()
    assert not await goes_on()
    assert {(run.outcome or {})["status"] for run in await runs()} == {"aborted"}


async def test_a_parent_that_is_deleted_takes_its_children_and_runs_along(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await under_way(room, levels=2)
    instance = await db(find_instance, room.key)
    assert isinstance(instance, AgentInstance)
    await db(delete_instance, instance)
    await run_until_idle()
    assert not await goes_on()
    assert await runs() == []
    assert not await db(AgentInstance.objects.exists)


async def test_a_stopped_child_is_a_failure_for_the_parent_that_goes_on(make_room: MakeRoom) -> None:
    room = make_room("chief")
    turn = await under_way(room)
    run = await only_run()
    assert await room.handle.abort_sub_agent(Errand, run.run_id, "enough")
    await run_until_idle()
    assert status_of(await room.turn(turn.pk)) == "completed"
    outcome = (await only_run()).outcome
    assert outcome is not None
    assert (outcome["ok"], outcome["status"], outcome["reason"]) == (False, "aborted", "enough")
    assert await room.handle.has_sub_agent(Errand, run.run_id)
    assert not await room.handle.abort_sub_agent(Errand, run.run_id)


async def test_a_deleted_child_is_a_failure_for_the_parent_that_goes_on(make_room: MakeRoom) -> None:
    room = make_room("chief")
    turn = await under_way(room)
    run = await only_run()
    assert await room.handle.delete_sub_agent(Errand, run.run_id)
    await run_until_idle()
    assert status_of(await room.turn(turn.pk)) == "completed"
    run = await only_run()
    assert (run.child_id, (run.outcome or {})["reason"]) == (None, "deleted")
    assert not await room.handle.has_sub_agent(Errand, run.run_id)
    assert not await room.handle.delete_sub_agent(Errand, run.run_id)


async def test_a_run_is_stopped_by_its_id(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await under_way(room)
    run = await only_run()
    assert await room.handle.abort_agent_run(run.run_id)
    await run_until_idle()
    info = await room.handle.get_agent_run(run.run_id)
    assert info is not None
    assert info.outcome is not None
    assert info.outcome["status"] == "aborted"
    assert not await room.handle.abort_agent_run(run.run_id)


async def test_a_cleared_child_ends_its_run(make_room: MakeRoom) -> None:
    room = make_room("chief")
    turn = await room.say(f"{call('errand', 'call tool pay {} id=pay')}\nsay: {{result}}")
    run = await only_run()
    await room.handle.sub_agent(Errand, run.run_id).clear()
    await run_until_idle()
    assert status_of(await room.turn(turn.pk)) == "completed"
    assert ((await only_run()).outcome or {})["status"] == "aborted"


async def test_a_child_that_waits_for_a_person_is_stopped_with_its_question(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await room.say(f"{call('errand', 'call tool pay {} id=pay')}\nsay: {{result}}")
    run = await only_run()
    await room.handle.abort_all_requests()
    await run_until_idle()
    assert ((await only_run()).outcome or {})["status"] == "aborted"
    assert await room.handle.sub_agent(Errand, run.run_id).pending_approvals() == []
    assert WORKED == []


async def test_a_detached_run_outlives_the_stop_of_its_parent(make_room: MakeRoom) -> None:
    room = make_room("chief")
    turn = await room.say(f"{call('later', HOLD)}\nsay: {{result}}\ncall tool work {{}} id=w")
    assert status_of(turn) == "completed"
    await room.handle.abort_all_requests()
    await room.handle.clear()
    await run_until_idle()
    assert (await only_run()).outcome is None


async def test_a_child_that_works_is_stopped_in_the_middle_of_its_text(make_room: MakeRoom) -> None:
    room = make_room("chief")
    async with worker():
        admission = await room.admit(
            f"{call('errand', 'say: I begin.' + chr(10) + 'wait 60 s' + chr(10) + 'say: never')}\nsay: {{result}}"
        )
        child = await first_child(room)
        assert await wait_until(partial(has_begun, child), group="none", timeout_seconds=20)
        assert await room.handle.cancel_chat(admission.turn.request_id)
        assert await wait_until(partial(has_ended, child), group="none", timeout_seconds=20)
    await run_until_idle()
    assert [status_of(turn) for turn in await turns_of(room, "errand")] == ["aborted"]
    assert ((await only_run()).outcome or {})["status"] == "aborted"


async def first_child(room: Room) -> str:
    """The id of the turn of the only child, once there is one."""

    async def is_there() -> bool:
        return bool(await turns_of(room, "errand"))

    assert await wait_until(is_there, group="none", timeout_seconds=20)
    return (await turns_of(room, "errand"))[0].pk


async def has_begun(turn_id: str) -> bool:
    return any("I begin." in record.text for record in await read(turn_id, 0))


async def has_ended(turn_id: str) -> bool:
    return await db(Turn.objects.filter(pk=turn_id, finished_at__isnull=False).exists)


async def test_a_parent_that_is_given_up_stops_what_works_for_it(make_room: MakeRoom) -> None:
    room = make_room("chief")
    turn = await under_way(room)

    def let_it_lie() -> None:
        resume_fiber(turn.fiber_id)
        Fiber.objects.filter(pk=turn.fiber_id).update(updated_at=Now() - timedelta(hours=1))
        recovery.sweep(prune=False)

    await db(let_it_lie)
    await run_until_idle()
    assert status_of(await room.turn(turn.pk)) == "error"
    assert not await goes_on()
    assert ((await only_run()).outcome or {})["status"] == "aborted"


async def test_a_sub_agent_that_a_stopped_turn_talks_to_stops_with_it(make_room: MakeRoom) -> None:
    room = make_room("chief")
    text = json.dumps({"text": "say: I begin.\nwait 60 s\nsay: never"})
    async with worker():
        admission = await room.admit(f"call tool talk {text} id=t\nsay: {{result}}")
        child = await first_child(room)
        assert await wait_until(partial(has_begun, child), group="none", timeout_seconds=20)
        assert await room.handle.cancel_chat(admission.turn.request_id)
        assert await wait_until(partial(has_ended, child), group="none", timeout_seconds=20)
    assert [status_of(turn) for turn in await turns_of(room, "errand")] == ["aborted"]
    assert await runs() == []
