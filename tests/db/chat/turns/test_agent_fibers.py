"""Background work of an agent: its methods, run by a worker, with what both generations of the interface promise."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from chat.agent import declared
from chat.agent.abilities.fiber_methods import CompletedFiber, LostFiber, RunningFiber
from chat.conversations.services import delete_instance
from chat.errors import FiberConflict, FiberInvalid, FiberMethodMissing, QuotaExceeded
from chat.instances.rows import ensure_instance
from chat.runtime.agent_factory import make_agent
from chat.think import Think
from fibers.context import current_fiber
from fibers.errors import FiberNotFound, FiberStopped, OutsideFiber
from fibers.execution.recovery import sweep
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from fibers.testing import die, expire_lease, run_until_idle, worker
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)

Script = Callable[[Any, RunningFiber], Awaitable[Any]]
SCRIPTS: dict[str, Script] = {}
TOLD: list[Any] = []


class Busy(Think):
    """Its background work does what a test says."""

    async def work(self, payload: Any, fiber: RunningFiber) -> Any:
        return await SCRIPTS[payload](payload, fiber)

    async def short(self) -> str:
        return "short"

    async def echo(self, payload: Any) -> Any:
        return payload

    async def _hidden(self) -> None: ...

    def sync(self) -> None: ...

    def on_fiber_complete(self, context: CompletedFiber) -> None:
        TOLD.append(context)


class Deciding(Busy):
    """Decides about lost work."""

    async def on_fiber_recovered(self, fiber: LostFiber) -> None:
        TOLD.append(fiber)
        if "hook" in SCRIPTS:
            await SCRIPTS["hook"](fiber, None)  # type: ignore[arg-type]  # it asks for nothing


class ByHand(Busy):
    """Takes up lost work when it is told to."""

    fibers = False


@pytest.fixture(autouse=True)
def _fresh() -> None:
    SCRIPTS.clear()
    TOLD.clear()


@pytest.fixture
def room(make_room: MakeRoom) -> Room:
    return make_room("busy")


def scripted(function: Script, name: str = "script") -> str:
    SCRIPTS[name] = function
    return name


async def dies(payload: Any, fiber: RunningFiber) -> Any:
    """Stash where it is, and lose its worker twice."""
    seen = {"attempt": fiber.attempt, "retries": fiber.retry_count, "snapshot": fiber.snapshot}
    if fiber.attempt <= 2:
        await fiber.stash({"attempt": fiber.attempt})
        await db(_die)
    return seen


def _die() -> None:
    context = current_fiber()
    assert context is not None
    die(context)


async def always_dies(payload: Any, fiber: RunningFiber) -> Any:
    await db(_die)


@asynccontextmanager
async def running(room: Room, script: Script, **options: Any) -> AsyncIterator[str]:
    """A fiber whose method runs while the block does."""
    started = asyncio.Event()

    async def wrapped(payload: Any, fiber: RunningFiber) -> Any:
        started.set()
        return await script(payload, fiber)

    fiber = await room.handle.start_fiber("work", scripted(wrapped), **options)
    task = asyncio.create_task(run_fiber(await pk_of(fiber.id)))
    async with asyncio.timeout(10):
        await started.wait()
    try:
        yield fiber.id
    finally:
        await task


async def pk_of(fiber_id: str) -> str:
    return await db(
        lambda: Fiber.objects.filter(payload__contains=f'"{fiber_id}"').values_list("pk", flat=True).first() or fiber_id
    )


async def rows() -> list[Fiber]:
    return await db(lambda: list(Fiber.objects.filter(scope__isnull=False)))


# The first generation


async def test_a_spawned_method_runs_and_its_agent_is_told(room: Room) -> None:
    fiber_id = await room.handle.spawn_fiber("echo", {"month": 11})
    waiting = await room.handle.get_fiber(fiber_id)
    assert waiting is not None
    assert (waiting.status, waiting.method, waiting.payload, waiting.max_retries) == (
        "pending",
        "echo",
        {"month": 11},
        3,
    )
    await run_until_idle()
    done = await room.handle.get_fiber(fiber_id)
    assert done is not None
    assert (done.status, done.result, done.error, done.retry_count) == ("completed", {"month": 11}, None, 0)
    (told,) = TOLD
    assert told == CompletedFiber(id=fiber_id, method="echo", payload={"month": 11}, result={"month": 11})


@pytest.mark.parametrize("name", ["missing", "_hidden", "sync", "on_fiber_complete", "spawn_fiber", ""])
async def test_what_is_no_async_method_of_the_class_is_refused_and_nothing_is_stored(room: Room, name: str) -> None:
    with pytest.raises(FiberInvalid):
        await room.handle.spawn_fiber(name)
    assert await rows() == []


async def test_the_refusal_names_class_and_method(room: Room) -> None:
    with pytest.raises(FiberMethodMissing, match="Busy has no async method 'missing' of its own"):
        await room.handle.spawn_fiber("missing")


async def test_a_method_takes_as_many_arguments_as_it_wants(room: Room) -> None:
    fiber_id = await room.handle.spawn_fiber("short", {"ignored": True})
    await run_until_idle()
    done = await room.handle.get_fiber(fiber_id)
    assert done is not None
    assert done.result == "short"


async def test_always_failing_with_two_retries_fails_after_three_runs_at_once(room: Room) -> None:
    seen: list[Any] = []

    async def fails(payload: Any, fiber: RunningFiber) -> None:
        seen.append((fiber.retry_count, fiber.snapshot))
        await fiber.stash(len(seen))
        raise ValueError("broken")

    fiber_id = await room.handle.spawn_fiber("work", scripted(fails), max_retries=2)
    await run_until_idle()  # no delay is skipped
    failed = await room.handle.get_fiber(fiber_id)
    assert failed is not None
    assert (failed.status, failed.retry_count, seen) == ("failed", 3, [(0, None), (1, 1), (2, 2)])
    assert failed.error == {"code": "internal", "message": "ValueError: broken", "retryable": False}
    assert TOLD == []


async def test_failing_once_completes_with_one_retry(room: Room) -> None:
    async def fails_once(payload: Any, fiber: RunningFiber) -> int:
        if fiber.retry_count == 0:
            raise ValueError("once")
        return fiber.retry_count

    fiber_id = await room.handle.spawn_fiber("work", scripted(fails_once))
    await run_until_idle()
    done = await room.handle.get_fiber(fiber_id)
    assert done is not None
    assert (done.status, done.retry_count, done.result) == ("completed", 1, 1)


async def test_a_fiber_that_runs_is_cancelled_at_once_and_ends_as_cancelled(room: Room) -> None:
    async def endless(payload: Any, fiber: RunningFiber) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "finished anyway"
        return "never"

    async with running(room, endless) as fiber_id:
        assert await room.handle.cancel_fiber(fiber_id)
    ended = await room.handle.get_fiber(fiber_id)
    assert ended is not None
    assert (ended.status, ended.result) == ("cancelled", None)
    assert not await room.handle.cancel_fiber(fiber_id)
    assert not await room.handle.cancel_fiber("unknown")


async def test_a_failed_fiber_is_restarted_with_its_payload_and_others_are_not(room: Room) -> None:
    seen: list[Any] = []

    async def fails_first(payload: Any, fiber: RunningFiber) -> str:
        seen.append(payload)
        if len(seen) == 1:
            raise ValueError("first")
        return "second"

    fiber_id = await room.handle.spawn_fiber("work", scripted(fails_first), max_retries=0)
    await run_until_idle()
    assert (await room.handle.restart_fiber(fiber_id)).status == "pending"
    assert (await room.handle.restart_fiber(fiber_id)).status == "pending"  # under way: left as it is
    await run_until_idle()
    assert seen == ["script", "script"]
    with pytest.raises(FiberConflict, match="completed"):
        await room.handle.restart_fiber(fiber_id)
    with pytest.raises(FiberNotFound):
        await room.handle.restart_fiber("unknown")


async def test_a_lost_worker_is_a_retry_and_the_next_run_has_the_snapshot(room: Room) -> None:
    fiber_id = await room.handle.spawn_fiber("work", scripted(dies))
    await run_until_idle()
    done = await room.handle.get_fiber(fiber_id)
    assert done is not None
    assert (done.status, done.retry_count) == ("completed", 2)
    assert done.result == {"attempt": 3, "retries": 2, "snapshot": {"attempt": 2}}


async def test_two_lost_workers_with_one_retry_fail_the_fiber(room: Room) -> None:
    fiber_id = await room.handle.spawn_fiber("work", scripted(always_dies), max_retries=1)
    await run_until_idle()
    failed = await room.handle.get_fiber(fiber_id)
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
    assert [fiber.id for fiber in TOLD] == made
    assert {fiber.snapshot["attempt"] for fiber in TOLD} == {1}
    found = [await room.handle.get_fiber(fiber_id) for fiber_id in made]
    assert [(fiber.status, fiber.reason) for fiber in found if fiber] == [("interrupted", "not_restarted")] * 3


async def test_a_hook_that_fails_is_called_again_and_nothing_is_lost(make_room: MakeRoom) -> None:
    room = make_room("deciding")

    async def fails_twice(fiber: Any, _none: Any) -> None:
        if len(TOLD) < 3:
            raise ValueError("not yet")

    scripted(fails_twice, "hook")
    fiber_id = await room.handle.spawn_fiber("work", scripted(always_dies))
    await run_until_idle()
    kept = await room.handle.get_fiber(fiber_id)
    assert kept is not None
    assert (kept.status, kept.reason, len(TOLD)) == ("interrupted", "worker_lost", 1)
    await run_until_idle(skip_delays=True)
    assert len(TOLD) == 3
    told = await room.handle.get_fiber(fiber_id)
    assert told is not None
    assert told.reason == "not_restarted"


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


async def test_completed_ones_are_kept_for_a_day_and_failed_ones_for_a_week(room: Room) -> None:
    async def fails(payload: Any, fiber: RunningFiber) -> None:
        raise ValueError("broken")

    done = await room.handle.spawn_fiber("echo", 1)
    failed = await room.handle.spawn_fiber("work", scripted(fails), max_retries=0)
    await run_until_idle()
    for days, kept in ((1.01, {failed}), (7.01, set())):
        age = timezone.now() - timedelta(days=days)
        await db(Fiber.objects.filter(scope__isnull=False).update, finished_at=age)
        await db(sweep)
        assert {row.pk for row in await rows()} == kept, done


# The second generation


async def test_the_same_id_and_key_join_the_fiber_that_has_them(room: Room) -> None:
    ids: dict[str, Any] = {"fiber_id": "report", "idempotency_key": "2026-11"}
    first = await room.handle.start_fiber("echo", 1, metadata={"for": "alice"}, **ids)
    again = await room.handle.start_fiber("echo", 2, **ids)
    assert (first.accepted, again.accepted) == (True, False)
    assert (again.id, again.payload, again.metadata, again.idempotency_key) == (
        "report",
        1,
        {"for": "alice"},
        "2026-11",
    )
    by_key = await room.handle.inspect_fiber_by_key("2026-11")
    assert by_key == await room.handle.inspect_fiber("report")
    assert len(await rows()) == 1


async def test_ids_and_keys_that_belong_to_two_fibers_are_refused(room: Room) -> None:
    await room.handle.start_fiber("echo", 1, fiber_id="a", idempotency_key="ka")
    await room.handle.start_fiber("echo", 1, fiber_id="b", idempotency_key="kb")
    wrong: list[dict[str, Any]] = [
        {"fiber_id": "a", "idempotency_key": "kb"},
        {"fiber_id": "a", "idempotency_key": "new"},
        {"fiber_id": "new", "idempotency_key": "ka"},
    ]
    for options in wrong:
        with pytest.raises(FiberConflict):
            await room.handle.start_fiber("echo", 1, **options)
    with pytest.raises(FiberConflict):
        await room.handle.start_fiber("short", 1, fiber_id="a")


@pytest.mark.parametrize("blank", ["", "  ", "x" * 129])
async def test_blank_and_long_ids_and_keys_are_refused(room: Room, blank: str) -> None:
    both: list[dict[str, Any]] = [{"fiber_id": blank}, {"idempotency_key": blank}]
    for options in both:
        with pytest.raises(FiberInvalid):
            await room.handle.start_fiber("echo", 1, **options)


async def test_conversations_do_not_share_ids_nor_see_each_others_fibers(make_room: MakeRoom) -> None:
    one, other = make_room("busy", "one"), make_room("busy", "other")
    made = [await each.handle.start_fiber("echo", 1, fiber_id="same", idempotency_key="k") for each in (one, other)]
    assert [fiber.accepted for fiber in made] == [True, True]
    spawned = await one.handle.spawn_fiber("echo", 2)
    assert await other.handle.get_fiber(spawned) is None
    assert not await other.handle.cancel_fiber(spawned)
    assert len(await one.handle.list_fibers()) == 2


async def test_a_caller_may_wait_for_the_end(room: Room) -> None:
    async with worker():
        done = await room.handle.start_fiber("echo", [1, 2], fiber_id="waited", wait_for_completion=True)
    assert (done.status, done.result, done.accepted) == ("completed", [1, 2], True)
    again = await room.handle.start_fiber("echo", [1, 2], fiber_id="waited", wait_for_completion=True)
    assert (again.status, again.accepted) == ("completed", False)


async def test_a_started_fiber_that_raises_has_failed(room: Room) -> None:
    async def fails(payload: Any, fiber: RunningFiber) -> None:
        raise ValueError("broken")

    fiber = await room.handle.start_fiber("work", scripted(fails))
    await run_until_idle()
    failed = await room.handle.inspect_fiber(fiber.id)
    assert failed is not None
    assert (failed.status, failed.attempts) == ("failed", 1)


async def test_a_started_fiber_goes_on_after_lost_workers(room: Room) -> None:
    fiber = await room.handle.start_fiber("work", scripted(dies))
    await run_until_idle()
    done = await room.handle.inspect_fiber(fiber.id)
    assert done is not None
    assert (done.status, done.retry_count, done.attempts) == ("completed", 0, 3)


async def test_lists_are_newest_first_filtered_and_bounded(room: Room) -> None:
    made = [(await room.handle.start_fiber("echo", number)).id for number in range(3)]
    await db(lambda: Fiber.objects.filter(pk=made[0]).update(created_at=F("created_at") - timedelta(seconds=5)))
    await db(lambda: Fiber.objects.filter(pk=made[2]).update(created_at=F("created_at") + timedelta(seconds=5)))
    assert [fiber.id for fiber in await room.handle.list_fibers()] == made[::-1]
    assert [fiber.id for fiber in await room.handle.list_fibers(limit=1)] == [made[2]]
    assert await room.handle.cancel_fiber(made[1])
    assert [fiber.id for fiber in await room.handle.list_fibers(statuses=["cancelled"])] == [made[1]]


async def test_a_fiber_is_cancelled_by_its_key(room: Room) -> None:
    await room.handle.start_fiber("echo", 1, idempotency_key="k")
    assert await room.handle.cancel_fiber_by_key("k")
    assert not await room.handle.cancel_fiber_by_key("k")
    assert not await room.handle.cancel_fiber_by_key("unknown")


async def test_deleting_keeps_what_runs_and_what_is_interrupted_unless_it_is_named(room: Room) -> None:
    made = [(await room.handle.start_fiber("echo", number, fiber_id=f"f{number}")).id for number in range(4)]
    for status, fiber_id in zip(["completed", "failed", "interrupted"], made, strict=False):
        pk = await pk_of(fiber_id)
        await db(Fiber.objects.filter(pk=pk).update, status=status, finished_at=timezone.now())
    assert await room.handle.delete_fibers(older_than_seconds=60) == 0
    assert await room.handle.delete_fibers(ids=["f0", "f3"]) == 1
    assert await room.handle.delete_fibers() == 1
    assert {fiber.id for fiber in await room.handle.list_fibers()} == {"f2", "f3"}
    assert await room.handle.delete_fibers(statuses=["interrupted", "pending"]) == 1
    assert {fiber.id for fiber in await room.handle.list_fibers()} == {"f3"}


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
async def test_an_interrupted_fiber_is_resolved_once(room: Room, status: str) -> None:
    fiber = await room.handle.start_fiber("echo", 1)
    assert not await room.handle.resolve_fiber(fiber.id, status)
    await db(Fiber.objects.filter(pk=fiber.id).update, status="interrupted", finished_at=timezone.now())
    error = "no use" if status == "failed" else None
    assert await room.handle.resolve_fiber(fiber.id, status, result={"by": "hand"}, error=error)
    assert not await room.handle.resolve_fiber(fiber.id, status)
    ended = await room.handle.inspect_fiber(fiber.id)
    assert ended is not None
    assert (ended.status, ended.result) == (status, {"by": "hand"})
    with pytest.raises(FiberInvalid):
        await room.handle.resolve_fiber(fiber.id, "running")


# Functions that run here


async def test_a_row_stands_for_a_function_while_it_runs_and_is_gone_afterwards(room: Room) -> None:
    seen: list[Any] = []

    async def function(fiber: RunningFiber) -> str:
        await fiber.stash({"at": 1})
        seen.append(await room.handle.inspect_fiber(fiber.id))
        return "value"

    assert await room.handle.run_fiber("crawl", function) == "value"
    assert (seen[0].method, seen[0].status, seen[0].snapshot) == ("crawl", "running", {"at": 1})
    assert await rows() == []


async def test_the_row_is_gone_after_a_failure_and_the_caller_gets_the_error(room: Room) -> None:
    async def function() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await room.handle.run_fiber("crawl", function)
    assert await rows() == []


async def test_two_functions_at_once_keep_their_own_snapshots(room: Room) -> None:
    agent = await db(make_agent, room.key)
    assert isinstance(agent, Think)
    both = asyncio.Barrier(2)

    async def function(number: int) -> Any:
        await agent.stash(number)
        await both.wait()
        context = current_fiber()
        assert context is not None
        return context.stashed

    found = await asyncio.gather(
        *(agent.run_fiber(f"part {number}", lambda number=number: function(number)) for number in (1, 2))
    )
    assert found == [1, 2]


@pytest.mark.parametrize("name", ["stash", "stash_fiber"])
async def test_stashing_outside_a_fiber_is_an_error(room: Room, name: str) -> None:
    with pytest.raises(OutsideFiber, match="stash\\(\\) called outside a fiber"):
        await getattr(room.handle, name)(1)


async def test_a_function_that_runs_is_never_recovered(room: Room) -> None:
    async def function() -> str:
        await db(sweep)
        assert await room.handle.check_fibers() == []
        return "whole"

    assert await room.handle.run_fiber("crawl", function) == "whole"


async def test_the_snapshot_of_a_function_whose_process_died_goes_to_the_hook_and_the_row_away(
    make_room: MakeRoom,
) -> None:
    room = make_room("deciding")

    async def function(fiber: RunningFiber) -> None:
        await fiber.stash({"page": 7})
        await db(_die)

    with pytest.raises(BaseException) as crash:
        await room.handle.run_fiber("crawl", function)
    assert type(crash.value).__name__ == "SimulatedCrash"
    await run_until_idle()
    assert [(fiber.method, fiber.snapshot, fiber.can_restart) for fiber in TOLD] == [("crawl", {"page": 7}, False)]
    assert await rows() == []


async def test_a_function_that_was_cancelled_stops_for_its_caller_too(room: Room) -> None:
    started = asyncio.Event()

    async def function() -> None:
        started.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(room.handle.run_fiber("crawl", function))
    async with asyncio.timeout(10):
        await started.wait()
    (row,) = await rows()
    assert await room.handle.cancel_fiber(row.pk)
    with pytest.raises(FiberStopped):
        await task
    assert await rows() == []


async def test_a_caller_that_stops_stops_its_function(room: Room) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def function() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    task = asyncio.create_task(room.handle.run_fiber("crawl", function))
    async with asyncio.timeout(10):
        await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    assert await rows() == []


async def test_an_instance_is_kept_alive_by_one_row_however_many_ask(room: Room) -> None:
    first, second = await room.handle.keep_alive(), await room.handle.keep_alive()
    assert [row.payload["method"] for row in await rows()] == ["keep_alive"]
    await first()
    await first()  # counts once
    assert len(await rows()) == 1
    await second()
    assert await rows() == []

    async def function() -> int:
        return len(await rows())

    assert await room.handle.keep_alive_while(function) == 1
    assert await rows() == []


# Deploys, limits, the end of the conversation


async def test_work_waits_for_the_method_that_a_deploy_brings_back(room: Room) -> None:
    fiber_id = await room.handle.spawn_fiber("echo", 1)
    declared.unregister(Busy)
    try:
        await db(lambda: Fiber.objects.update(available_at=F("available_at") - timedelta(minutes=1)))
        await run_until_idle(skip_delays=True)
        waiting = await room.handle.get_fiber(fiber_id)
        assert waiting is not None
        assert (waiting.status, waiting.reason, waiting.attempts) == ("pending", "method_missing", 0)
    finally:
        declared.register(Busy)
    await run_until_idle()
    done = await room.handle.get_fiber(fiber_id)
    assert done is not None
    assert (done.status, done.attempts, done.retry_count) == ("completed", 1, 0)


async def test_each_user_has_a_limit_of_work_under_way_and_of_its_pace(room: Room, settings: Any) -> None:
    settings.THINK_FIBERS_PER_USER = 2
    for number in range(2):
        await room.handle.spawn_fiber("echo", number)
    with pytest.raises(QuotaExceeded, match="2 pieces of background work at a time"):
        await room.handle.spawn_fiber("echo", 2)
    await run_until_idle()
    settings.THINK_FIBERS_PER_MINUTE = 2
    with pytest.raises(QuotaExceeded, match="within a minute"):
        await room.handle.spawn_fiber("echo", 2)


async def test_what_is_too_large_or_no_json_is_refused(room: Room, settings: Any) -> None:
    settings.THINK_FIBER_BYTES = 10
    for payload in ("x" * 11, {1, 2}):
        with pytest.raises(FiberInvalid):
            await room.handle.spawn_fiber("echo", payload)
    assert await rows() == []


async def test_deleting_the_conversation_stops_its_work(room: Room) -> None:
    async def endless(payload: Any, fiber: RunningFiber) -> None:
        await asyncio.sleep(60)

    await room.handle.spawn_fiber("echo", 1)
    async with running(room, endless):
        instance = await db(ensure_instance, room.key)
        assert await db(delete_instance, instance)
    assert [row.status for row in await rows()] == ["cancelled"]  # the one that ran, until it is pruned


async def test_work_of_a_conversation_that_vanished_is_stopped(room: Room) -> None:
    fiber_id = await room.handle.spawn_fiber("echo", 1)
    instance = await db(ensure_instance, room.key)
    await db(instance.delete)
    await run_until_idle()
    row = await db(lambda: Fiber.objects.get(pk=fiber_id))
    assert (row.status, row.reason) == ("cancelled", "deleted")


async def test_an_agent_in_a_turn_has_the_same_methods(room: Room) -> None:
    agent = await db(make_agent, room.key)
    assert isinstance(agent, Think)
    fiber_id = await agent.spawn_fiber("echo", 3)
    found = await agent.get_fiber(fiber_id)
    assert found == await room.handle.get_fiber(fiber_id)


async def test_two_workers_that_both_believe_they_hold_a_fiber_are_fenced(room: Room) -> None:
    async def taken_over(payload: Any, fiber: RunningFiber) -> str:
        context = current_fiber()
        assert context is not None
        if fiber.attempt == 1:
            await db(expire_lease, context.fiber_id)
            await db(sweep)
            with pytest.raises(Exception, match="runs this fiber now"):
                await fiber.stash("too late")
        return f"attempt {fiber.attempt}"

    fiber_id = await room.handle.spawn_fiber("work", scripted(taken_over))
    await run_until_idle()
    done = await room.handle.get_fiber(fiber_id)
    assert done is not None
    assert (done.status, done.result, done.snapshot) == ("completed", "attempt 2", None)
