"""Background work under an id and a key, and functions that run in their caller's process."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from chat.agent.values.background import RunningFiber
from chat.errors import FiberConflict, FiberInvalid
from chat.instance.instance import make_agent
from chat.instances.rows import ensure_instance
from chat.think import Think
from fibers.context import current_fiber
from fibers.errors import FiberStopped, OutsideFiber
from fibers.execution.recovery import sweep
from fibers.models import Fiber
from fibers.services import start_fiber
from fibers.testing import run_until_idle, worker
from tests.db.chat.turns.agents.fibering import GIVEN, dies, kill_here, nothing_scripted, pk_of, rows, scripted
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

__all__ = ["nothing_scripted"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)


async def test_the_same_id_and_key_join_the_fiber_that_has_them(busy_room: Room) -> None:
    ids: dict[str, Any] = {"fiber_id": "report", "idempotency_key": "2026-11"}
    first = await busy_room.handle.start_fiber("echo", 1, metadata={"for": "alice"}, **ids)
    again = await busy_room.handle.start_fiber("echo", 2, **ids)
    assert (first.accepted, again.accepted) == (True, False)
    assert (again.id, again.payload, again.metadata, again.idempotency_key) == (
        "report",
        1,
        {"for": "alice"},
        "2026-11",
    )
    by_key = await busy_room.handle.inspect_fiber_by_key("2026-11")
    assert by_key == await busy_room.handle.inspect_fiber("report")
    assert len(await rows()) == 1


async def test_ids_and_keys_that_belong_to_two_fibers_are_refused(busy_room: Room) -> None:
    await busy_room.handle.start_fiber("echo", 1, fiber_id="a", idempotency_key="ka")
    await busy_room.handle.start_fiber("echo", 1, fiber_id="b", idempotency_key="kb")
    wrong: list[dict[str, Any]] = [
        {"fiber_id": "a", "idempotency_key": "kb"},
        {"fiber_id": "a", "idempotency_key": "new"},
        {"fiber_id": "new", "idempotency_key": "ka"},
    ]
    for options in wrong:
        with pytest.raises(FiberConflict):
            await busy_room.handle.start_fiber("echo", 1, **options)
    with pytest.raises(FiberConflict):
        await busy_room.handle.start_fiber("short", 1, fiber_id="a")


@pytest.mark.parametrize("blank", ["", "  ", "x" * 129])
async def test_blank_and_long_ids_and_keys_are_refused(busy_room: Room, blank: str) -> None:
    both: list[dict[str, Any]] = [{"fiber_id": blank}, {"idempotency_key": blank}]
    for options in both:
        with pytest.raises(FiberInvalid):
            await busy_room.handle.start_fiber("echo", 1, **options)


async def test_conversations_do_not_share_ids_nor_see_each_others_fibers(make_room: MakeRoom) -> None:
    one, other = make_room("busy", "one"), make_room("busy", "other")
    made = [await each.handle.start_fiber("echo", 1, fiber_id="same", idempotency_key="k") for each in (one, other)]
    assert [fiber.accepted for fiber in made] == [True, True]
    spawned = await one.handle.spawn_fiber("echo", 2)
    assert await other.handle.get_fiber(spawned) is None
    assert not await other.handle.cancel_fiber(spawned)
    assert len(await one.handle.list_fibers()) == 2


async def test_a_caller_may_wait_for_the_end(busy_room: Room) -> None:
    async with worker():
        done = await busy_room.handle.start_fiber("echo", [1, 2], fiber_id="waited", wait_for_completion=True)
    assert (done.status, done.result, done.accepted) == ("completed", [1, 2], True)
    again = await busy_room.handle.start_fiber("echo", [1, 2], fiber_id="waited", wait_for_completion=True)
    assert (again.status, again.accepted) == ("completed", False)


async def test_a_started_fiber_that_raises_has_failed(busy_room: Room) -> None:
    async def fails(payload: Any, fiber: RunningFiber) -> None:
        raise ValueError("broken")

    fiber = await busy_room.handle.start_fiber("work", scripted(fails))
    await run_until_idle()
    failed = await busy_room.handle.inspect_fiber(fiber.id)
    assert failed is not None
    assert (failed.status, failed.attempts) == ("failed", 1)


async def test_a_started_fiber_goes_on_after_lost_workers(busy_room: Room) -> None:
    fiber = await busy_room.handle.start_fiber("work", scripted(dies))
    await run_until_idle()
    done = await busy_room.handle.inspect_fiber(fiber.id)
    assert done is not None
    assert (done.status, done.retry_count, done.attempts) == ("completed", 0, 3)


async def test_lists_are_newest_first_filtered_and_bounded(busy_room: Room) -> None:
    made = [(await busy_room.handle.start_fiber("echo", number)).id for number in range(3)]
    await db(lambda: Fiber.objects.filter(pk=made[0]).update(created_at=F("created_at") - timedelta(seconds=5)))
    await db(lambda: Fiber.objects.filter(pk=made[2]).update(created_at=F("created_at") + timedelta(seconds=5)))
    assert [fiber.id for fiber in await busy_room.handle.list_fibers()] == made[::-1]
    assert [fiber.id for fiber in await busy_room.handle.list_fibers(limit=1)] == [made[2]]
    assert await busy_room.handle.cancel_fiber(made[1])
    assert [fiber.id for fiber in await busy_room.handle.list_fibers(statuses=["cancelled"])] == [made[1]]


async def test_a_fiber_is_cancelled_by_its_key(busy_room: Room) -> None:
    await busy_room.handle.start_fiber("echo", 1, idempotency_key="k")
    assert await busy_room.handle.cancel_fiber_by_key("k")
    assert not await busy_room.handle.cancel_fiber_by_key("k")
    assert not await busy_room.handle.cancel_fiber_by_key("unknown")


async def test_deleting_keeps_what_runs_and_what_is_interrupted_unless_it_is_named(busy_room: Room) -> None:
    made = [(await busy_room.handle.start_fiber("echo", number, fiber_id=f"f{number}")).id for number in range(4)]
    for status, fiber_id in zip(["completed", "failed", "interrupted"], made, strict=False):
        pk = await pk_of(fiber_id)
        await db(Fiber.objects.filter(pk=pk).update, status=status, finished_at=timezone.now())
    assert await busy_room.handle.delete_fibers(older_than_seconds=60) == 0
    assert await busy_room.handle.delete_fibers(ids=["f0", "f3"]) == 1
    assert await busy_room.handle.delete_fibers() == 1
    assert {fiber.id for fiber in await busy_room.handle.list_fibers()} == {"f2", "f3"}
    assert await busy_room.handle.delete_fibers(statuses=["interrupted", "pending"]) == 1
    assert {fiber.id for fiber in await busy_room.handle.list_fibers()} == {"f3"}


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
async def test_an_interrupted_fiber_is_resolved_once(busy_room: Room, status: str) -> None:
    fiber = await busy_room.handle.start_fiber("echo", 1)
    assert not await busy_room.handle.resolve_fiber(fiber.id, status)
    await db(Fiber.objects.filter(pk=fiber.id).update, status="interrupted", finished_at=timezone.now())
    error = "no use" if status == "failed" else None
    assert await busy_room.handle.resolve_fiber(fiber.id, status, result={"by": "hand"}, error=error)
    assert not await busy_room.handle.resolve_fiber(fiber.id, status)
    ended = await busy_room.handle.inspect_fiber(fiber.id)
    assert ended is not None
    assert (ended.status, ended.result) == (status, {"by": "hand"})
    with pytest.raises(FiberInvalid):
        await busy_room.handle.resolve_fiber(fiber.id, "running")


async def test_a_row_stands_for_a_function_while_it_runs_and_is_gone_afterwards(busy_room: Room) -> None:
    seen: list[Any] = []

    async def function(fiber: RunningFiber) -> str:
        await fiber.stash({"at": 1})
        seen.append(await busy_room.handle.inspect_fiber(fiber.id))
        return "value"

    assert await busy_room.handle.run_fiber("crawl", function) == "value"
    assert (seen[0].method, seen[0].status, seen[0].snapshot) == ("crawl", "running", {"at": 1})
    assert await rows() == []


async def test_the_row_is_gone_after_a_failure_and_the_caller_gets_the_error(busy_room: Room) -> None:
    async def function() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await busy_room.handle.run_fiber("crawl", function)
    assert await rows() == []


async def test_two_functions_at_once_keep_their_own_snapshots(busy_room: Room) -> None:
    agent = await db(make_agent, busy_room.key)
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
async def test_stashing_outside_a_fiber_is_an_error(busy_room: Room, name: str) -> None:
    with pytest.raises(OutsideFiber, match="stash\\(\\) called outside a fiber"):
        await getattr(busy_room.handle, name)(1)


async def test_a_function_that_runs_is_never_recovered(busy_room: Room) -> None:
    async def function() -> str:
        await db(sweep)
        assert await busy_room.handle.check_fibers() == []
        return "whole"

    assert await busy_room.handle.run_fiber("crawl", function) == "whole"


async def test_the_snapshot_of_a_function_whose_process_died_goes_to_the_hook_and_the_row_away(
    make_room: MakeRoom,
) -> None:
    room = make_room("deciding")

    async def function(fiber: RunningFiber) -> None:
        await fiber.stash({"page": 7})
        await db(kill_here)

    with pytest.raises(BaseException) as crash:
        await room.handle.run_fiber("crawl", function)
    assert type(crash.value).__name__ == "SimulatedCrash"
    await run_until_idle()
    assert [(fiber.method, fiber.snapshot, fiber.can_restart) for fiber in GIVEN] == [("crawl", {"page": 7}, False)]
    assert await rows() == []


async def test_a_function_that_was_cancelled_stops_for_its_caller_too(busy_room: Room) -> None:
    started = asyncio.Event()

    async def function() -> None:
        started.set()
        await asyncio.sleep(60)  # until it is cancelled

    task = asyncio.create_task(busy_room.handle.run_fiber("crawl", function))
    async with asyncio.timeout(10):
        await started.wait()
    (row,) = await rows()
    assert await busy_room.handle.cancel_fiber(row.pk)
    with pytest.raises(FiberStopped):
        await task
    assert await rows() == []


async def test_a_caller_that_stops_stops_its_function(busy_room: Room) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def function() -> None:
        started.set()
        try:
            await asyncio.sleep(60)  # until its caller stops
        finally:
            ended.set()

    task = asyncio.create_task(busy_room.handle.run_fiber("crawl", function))
    async with asyncio.timeout(10):
        await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    assert await rows() == []


async def test_an_instance_is_kept_alive_by_one_row_however_many_ask(busy_room: Room) -> None:
    first, second = await busy_room.handle.keep_alive(), await busy_room.handle.keep_alive()
    assert [row.payload["method"] for row in await rows()] == ["keep_alive"]
    await first()
    await first()  # counts once
    assert len(await rows()) == 1
    await second()
    assert await rows() == []

    async def function() -> int:
        return len(await rows())

    assert await busy_room.handle.keep_alive_while(function) == 1
    assert await rows() == []


async def test_a_function_whose_worker_was_stopped_goes_to_the_hook_as_well(make_room: MakeRoom) -> None:
    room = make_room("deciding")
    instance = await db(ensure_instance, room.key)
    payload = {"instance_id": instance.pk, "method": "crawl", "payload": None, "id": None, "is_spawned": False}
    await db(lambda: start_fiber("chat.agent_run", payload, scope=instance.pk))  # as a stopped worker hands it back
    await run_until_idle()
    assert [(fiber.method, fiber.can_restart) for fiber in GIVEN] == [("crawl", False)]
    assert await rows() == []
