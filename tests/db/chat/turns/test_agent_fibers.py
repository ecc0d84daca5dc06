"""Background work of an agent, as its first interface promises: spawned, tried again, recovered."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from chat.agent import declared
from chat.agent.values.background import CompletedFiber, RunningFiber
from chat.background import rows as background_rows
from chat.errors import FiberConflict, FiberInvalid, FiberMethodMissing, QuotaExceeded
from chat.instance.instance import make_agent
from chat.instances.rows import ensure_instance
from chat.operations.removal import delete_instance
from chat.think import Think
from chat.user_code.call_hook import AgentCodeFailed
from fibers.context import ENDING, current_fiber
from fibers.errors import FiberNotFound
from fibers.execution.recovery import sweep
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from fibers.testing import crash_after, expire_lease, run_until_idle
from tests.db.chat.turns.agents.fibering import (
    GIVEN,
    Busy,
    always_dies,
    dies,
    kill_here,
    nothing_scripted,
    rows,
    running,
    scripted,
)
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

__all__ = ["nothing_scripted"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_spawned_method_runs_and_its_agent_is_told(busy_room: Room) -> None:
    fiber_id = await busy_room.handle.spawn_fiber("echo", {"month": 11})
    waiting = await busy_room.handle.get_fiber(fiber_id)
    assert waiting is not None
    assert (waiting.status, waiting.method, waiting.payload, waiting.max_retries) == (
        "pending",
        "echo",
        {"month": 11},
        3,
    )
    await run_until_idle()
    done = await busy_room.handle.get_fiber(fiber_id)
    assert done is not None
    assert (done.status, done.result, done.error, done.retry_count) == ("completed", {"month": 11}, None, 0)
    (told,) = GIVEN
    assert told == CompletedFiber(id=fiber_id, method="echo", payload={"month": 11}, result={"month": 11})


@pytest.mark.parametrize("name", ["missing", "_hidden", "sync", "on_fiber_complete", "spawn_fiber", ""])
async def test_what_is_no_async_method_of_the_class_is_refused_and_nothing_is_stored(
    busy_room: Room, name: str
) -> None:
    with pytest.raises(FiberInvalid):
        await busy_room.handle.spawn_fiber(name)
    assert await rows() == []


async def test_the_refusal_names_class_and_method(busy_room: Room) -> None:
    with pytest.raises(FiberMethodMissing, match="Busy has no async method 'missing' of its own"):
        await busy_room.handle.spawn_fiber("missing")


async def test_a_method_takes_as_many_arguments_as_it_wants(busy_room: Room) -> None:
    fiber_id = await busy_room.handle.spawn_fiber("short", {"ignored": True})
    await run_until_idle()
    done = await busy_room.handle.get_fiber(fiber_id)
    assert done is not None
    assert done.result == "short"


async def test_always_failing_with_two_retries_fails_after_three_runs_at_once(busy_room: Room) -> None:
    seen: list[Any] = []

    async def fails(payload: Any, fiber: RunningFiber) -> None:
        seen.append((fiber.retry_count, fiber.snapshot))
        await fiber.stash(len(seen))
        raise ValueError("broken")

    fiber_id = await busy_room.handle.spawn_fiber("work", scripted(fails), max_retries=2)
    await run_until_idle()  # no delay is skipped
    failed = await busy_room.handle.get_fiber(fiber_id)
    assert failed is not None
    assert (failed.status, failed.retry_count, seen) == ("failed", 3, [(0, None), (1, 1), (2, 2)])
    assert failed.error == {"code": "internal", "message": "ValueError: broken", "retryable": False}
    assert GIVEN == []


async def test_failing_once_completes_with_one_retry(busy_room: Room) -> None:
    async def fails_once(payload: Any, fiber: RunningFiber) -> int:
        if fiber.retry_count == 0:
            raise ValueError("once")
        return fiber.retry_count

    fiber_id = await busy_room.handle.spawn_fiber("work", scripted(fails_once))
    await run_until_idle()
    done = await busy_room.handle.get_fiber(fiber_id)
    assert done is not None
    assert (done.status, done.retry_count, done.result) == ("completed", 1, 1)


async def test_a_fiber_that_runs_is_cancelled_at_once_and_ends_as_cancelled(busy_room: Room) -> None:
    seen = asyncio.Event()

    async def endless(payload: Any, fiber: RunningFiber) -> str:
        try:
            await asyncio.sleep(60)  # until it is cancelled
        except asyncio.CancelledError:
            await seen.wait()
            return "finished anyway"
        return "never"

    async with running(busy_room, endless) as fiber_id:
        assert await busy_room.handle.cancel_fiber(fiber_id)
        ending = await busy_room.handle.get_fiber(fiber_id)
        assert ending is not None
        assert (ending.status, ending.reason) == ("running", "cancelled")  # so a page knows how it ends
        seen.set()
    ended = await busy_room.handle.get_fiber(fiber_id)
    assert ended is not None
    assert (ended.status, ended.result) == ("cancelled", None)
    assert not await busy_room.handle.cancel_fiber(fiber_id)
    assert not await busy_room.handle.cancel_fiber("unknown")


async def test_a_failed_fiber_is_restarted_with_its_payload_and_others_are_not(busy_room: Room) -> None:
    seen: list[Any] = []

    async def fails_first(payload: Any, fiber: RunningFiber) -> str:
        seen.append(payload)
        if len(seen) == 1:
            raise ValueError("first")
        return "second"

    fiber_id = await busy_room.handle.spawn_fiber("work", scripted(fails_first), max_retries=0)
    await run_until_idle()
    assert (await busy_room.handle.restart_fiber(fiber_id)).status == "pending"
    assert (await busy_room.handle.restart_fiber(fiber_id)).status == "pending"  # under way: left as it is
    await run_until_idle()
    assert seen == ["script", "script"]
    with pytest.raises(FiberConflict, match="completed"):
        await busy_room.handle.restart_fiber(fiber_id)
    with pytest.raises(FiberNotFound):
        await busy_room.handle.restart_fiber("unknown")


async def test_a_lost_worker_is_a_retry_and_the_next_run_has_the_snapshot(busy_room: Room) -> None:
    fiber_id = await busy_room.handle.spawn_fiber("work", scripted(dies))
    await run_until_idle()
    done = await busy_room.handle.get_fiber(fiber_id)
    assert done is not None
    assert (done.status, done.retry_count) == ("completed", 2)
    assert done.result == {"attempt": 3, "retries": 2, "snapshot": {"attempt": 2}}


async def test_two_lost_workers_with_one_retry_fail_the_fiber(busy_room: Room) -> None:
    fiber_id = await busy_room.handle.spawn_fiber("work", scripted(always_dies), max_retries=1)
    await run_until_idle()
    failed = await busy_room.handle.get_fiber(fiber_id)
    assert failed is not None
    assert (failed.status, failed.reason, failed.attempts) == ("failed", "retries_exhausted", 2)
    assert failed.error is not None
    assert failed.error["message"] == "max retries exceeded (eviction recovery)"


async def test_several_lost_fibers_are_given_to_the_hook_oldest_first_once(make_room: MakeRoom) -> None:
    room = make_room("deciding")
    scripted(dies)
    made = [await room.handle.spawn_fiber("work", "script") for _ in range(3)]
    for fiber_id in reversed(made):
        await asyncio.gather(run_fiber(fiber_id), return_exceptions=True)
    await run_until_idle()
    assert [fiber.id for fiber in GIVEN] == made
    assert {fiber.snapshot["attempt"] for fiber in GIVEN} == {1}
    found = [await room.handle.get_fiber(fiber_id) for fiber_id in made]
    assert [(fiber.status, fiber.reason) for fiber in found if fiber] == [("interrupted", "not_restarted")] * 3


async def test_a_hook_that_fails_is_called_again_and_nothing_is_lost(make_room: MakeRoom) -> None:
    room = make_room("deciding")

    async def fails_twice(fiber: Any, _none: Any) -> None:
        if len(GIVEN) < 3:
            raise ValueError("not yet")

    scripted(fails_twice, "hook")
    fiber_id = await room.handle.spawn_fiber("work", scripted(always_dies))
    await run_until_idle()
    kept = await room.handle.get_fiber(fiber_id)
    assert kept is not None
    assert (kept.status, kept.reason, len(GIVEN)) == ("interrupted", "worker_lost", 1)
    await run_until_idle(skip_delays=True)
    assert len(GIVEN) == 3
    told = await room.handle.get_fiber(fiber_id)
    assert told is not None
    assert told.reason == "not_restarted"


async def test_what_was_lost_a_day_ago_is_given_up_when_the_hook_raises_and_holds_nothing_up(
    make_room: MakeRoom,
) -> None:
    room = make_room("deciding")

    async def fails_for_the_first(fiber: Any, _none: Any) -> None:
        if fiber.id == poison:
            raise ValueError("always")

    scripted(fails_for_the_first, "hook")
    scripted(always_dies, "dies")
    poison = await room.handle.spawn_fiber("work", "dies")
    await run_until_idle(skip_delays=True)
    fresh = await room.handle.get_fiber(poison)
    assert fresh is not None
    assert (fresh.status, fresh.reason) == ("interrupted", "worker_lost")
    later = await room.handle.spawn_fiber("work", "dies")
    await run_until_idle(skip_delays=True)
    held_up = await room.handle.get_fiber(later)
    assert held_up is not None
    assert held_up.reason == "worker_lost"
    await db(lambda: Fiber.objects.filter(pk=poison).update(finished_at=Now() - timedelta(hours=24, minutes=1)))
    with pytest.raises(AgentCodeFailed):
        await room.handle.check_fibers()
    given_up = await room.handle.get_fiber(poison)
    assert given_up is not None
    assert (given_up.status, given_up.reason) == ("failed", "hook_failed")
    assert [fiber.id for fiber in await room.handle.check_fibers()] == [later]
    assert (await room.handle.restart_fiber(poison)).status == "pending"


async def test_a_lost_function_is_dropped_when_the_hook_raises_a_day_later(make_room: MakeRoom) -> None:
    room = make_room("deciding")

    async def fails(fiber: Any, _none: Any) -> None:
        raise ValueError("always")

    scripted(fails, "hook")
    with contextlib.suppress(BaseException):
        await room.handle.run_fiber("crawl", lambda fiber: db(kill_here))
    await run_until_idle(skip_delays=True)
    assert [row.reason for row in await rows()] == ["worker_lost"]
    await db(lambda: Fiber.objects.filter(scope__isnull=False).update(finished_at=Now() - timedelta(hours=25)))
    with pytest.raises(AgentCodeFailed):
        await room.handle.check_fibers()
    assert await rows() == []


async def test_without_the_flag_lost_work_waits_to_be_checked(make_room: MakeRoom) -> None:
    room = make_room("by-hand")
    fiber_id = await room.handle.spawn_fiber("work", scripted(dies))
    await run_until_idle()
    lost = await room.handle.get_fiber(fiber_id)
    assert lost is not None
    assert (lost.status, lost.reason) == ("interrupted", "worker_lost")
    assert [fiber.id for fiber in await room.handle.check_fibers()] == [fiber_id]
    await run_until_idle()
    assert [fiber.status for fiber in await room.handle.check_fibers()] == ["pending"]
    await run_until_idle()
    done = await room.handle.get_fiber(fiber_id)
    assert done is not None
    assert done.status == "completed"
    assert await room.handle.check_fibers() == []


async def test_completed_ones_are_kept_for_a_day_and_failed_ones_for_a_week(busy_room: Room) -> None:
    async def fails(payload: Any, fiber: RunningFiber) -> None:
        raise ValueError("broken")

    done = await busy_room.handle.spawn_fiber("echo", 1)
    failed = await busy_room.handle.spawn_fiber("work", scripted(fails), max_retries=0)
    await run_until_idle()
    for days, kept in ((1.01, {failed}), (7.01, set())):
        age = timezone.now() - timedelta(days=days)
        await db(Fiber.objects.filter(scope__isnull=False).update, finished_at=age)
        await db(sweep)
        assert {row.pk for row in await rows()} == kept, done


async def test_work_waits_for_the_method_that_a_deploy_brings_back(busy_room: Room) -> None:
    fiber_id = await busy_room.handle.spawn_fiber("echo", 1)
    declared.unregister(Busy)
    try:
        await db(lambda: Fiber.objects.update(available_at=F("available_at") - timedelta(minutes=1)))
        await run_until_idle(skip_delays=True)
        waiting = await busy_room.handle.get_fiber(fiber_id)
        assert waiting is not None
        assert (waiting.status, waiting.reason, waiting.attempts) == ("pending", "method_missing", 0)
    finally:
        declared.register(Busy)
    await run_until_idle()
    done = await busy_room.handle.get_fiber(fiber_id)
    assert done is not None
    assert (done.status, done.attempts, done.retry_count) == ("completed", 1, 0)


async def test_each_user_has_a_limit_of_work_under_way_and_of_its_pace(busy_room: Room, settings: Any) -> None:
    settings.THINK_FIBERS_PER_USER = 2
    for number in range(2):
        await busy_room.handle.spawn_fiber("echo", number)
    with pytest.raises(QuotaExceeded, match="2 pieces of background work at a time"):
        await busy_room.handle.spawn_fiber("echo", 2)
    await run_until_idle()
    settings.THINK_FIBERS_PER_MINUTE = 2
    with pytest.raises(QuotaExceeded, match="within a minute"):
        await busy_room.handle.spawn_fiber("echo", 2)


async def test_what_is_too_large_or_no_json_is_refused(busy_room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_rows, "MAX_PAYLOAD_BYTES", 10)
    for payload in ("x" * 11, {1, 2}):
        with pytest.raises(FiberInvalid):
            await busy_room.handle.spawn_fiber("echo", payload)
    assert await rows() == []


async def test_deleting_the_conversation_stops_its_work(busy_room: Room) -> None:
    async def endless(payload: Any, fiber: RunningFiber) -> None:
        await asyncio.sleep(60)  # until its conversation is deleted

    await busy_room.handle.spawn_fiber("echo", 1)
    async with running(busy_room, endless):
        instance = await db(ensure_instance, busy_room.key)
        assert await db(delete_instance, instance)
    assert [row.status for row in await rows()] == ["cancelled"]  # the one that ran, until it is pruned


async def test_work_of_a_conversation_that_vanished_is_stopped(busy_room: Room) -> None:
    fiber_id = await busy_room.handle.spawn_fiber("echo", 1)
    instance = await db(ensure_instance, busy_room.key)
    await db(instance.delete)
    await run_until_idle()
    row = await db(lambda: Fiber.objects.get(pk=fiber_id))
    assert (row.status, row.reason) == ("cancelled", "deleted")


async def test_an_agent_in_a_turn_has_the_same_methods(busy_room: Room) -> None:
    agent = await db(make_agent, busy_room.key)
    assert isinstance(agent, Think)
    fiber_id = await agent.spawn_fiber("echo", 3)
    found = await agent.get_fiber(fiber_id)
    assert found == await busy_room.handle.get_fiber(fiber_id)


async def test_two_workers_that_both_believe_they_hold_a_fiber_are_fenced(busy_room: Room) -> None:
    async def taken_over(payload: Any, fiber: RunningFiber) -> str:
        context = current_fiber()
        assert context is not None
        if fiber.attempt == 1:
            await db(expire_lease, context.fiber_id)
            await db(sweep)
            with pytest.raises(Exception, match="runs this fiber now"):
                await fiber.stash("too late")
        return f"attempt {fiber.attempt}"

    fiber_id = await busy_room.handle.spawn_fiber("work", scripted(taken_over))
    await run_until_idle()
    done = await busy_room.handle.get_fiber(fiber_id)
    assert done is not None
    assert (done.status, done.result, done.snapshot) == ("completed", "attempt 2", None)


async def test_a_crash_in_the_transaction_that_completes_leaves_one_result_and_calls_the_hook_once(
    busy_room: Room,
) -> None:
    with crash_after(ENDING):
        fiber_id = await busy_room.handle.spawn_fiber("echo", "once")
        await run_until_idle()
    done = await busy_room.handle.get_fiber(fiber_id)
    assert done is not None
    assert (done.status, done.result, done.attempts, done.retry_count) == ("completed", "once", 2, 1)
    assert len(GIVEN) == 1


async def test_a_worker_that_dies_in_the_hook_loses_nothing(make_room: MakeRoom) -> None:
    room = make_room("deciding")

    async def dies_once(fiber: Any, _none: Any) -> None:
        if len(GIVEN) == 1:
            await db(kill_here)

    scripted(dies_once, "hook")
    fiber_id = await room.handle.spawn_fiber("work", scripted(always_dies))
    await run_until_idle(skip_delays=True)
    found = await room.handle.get_fiber(fiber_id)
    assert found is not None
    assert (found.status, found.reason, len(GIVEN)) == ("interrupted", "not_restarted", 2)


async def test_a_worker_that_is_stopped_hands_its_work_back_without_a_hook(busy_room: Room) -> None:
    started = asyncio.Event()

    async def endless(payload: Any, fiber: RunningFiber) -> str:
        if fiber.attempt == 1:
            await fiber.stash("begun")
            started.set()
            await asyncio.sleep(60)  # until its worker is stopped
        return f"{fiber.snapshot}, again"

    fiber_id = await busy_room.handle.spawn_fiber("work", scripted(endless))
    task = asyncio.create_task(run_fiber(fiber_id))
    async with asyncio.timeout(10):
        await started.wait()
    task.cancel()  # as a worker's shutdown does
    await asyncio.wait({task})
    waiting = await busy_room.handle.get_fiber(fiber_id)
    assert waiting is not None
    assert (waiting.status, waiting.reason, waiting.retry_count) == ("pending", "shutdown", 0)
    await run_until_idle()
    done = await busy_room.handle.get_fiber(fiber_id)
    assert done is not None
    assert done.result == "begun, again"


async def test_the_limit_does_not_refuse_what_was_started_before(busy_room: Room, settings: Any) -> None:
    settings.THINK_FIBERS_PER_USER = 1
    await busy_room.handle.start_fiber("echo", 1, fiber_id="one")
    assert not (await busy_room.handle.start_fiber("echo", 1, fiber_id="one")).accepted
