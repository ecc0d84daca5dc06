"""The queue of an agent: its calls run one at a time, in order, each with its retries, whatever crashes."""

import asyncio
from typing import Any

import pytest

from chat.agent.values.background import RunningFiber
from chat.errors import FiberInvalid, FiberMethodMissing, QuotaExceeded
from chat.instance.instance import make_agent
from chat.instances.rows import ensure_instance
from chat.operations.removal import delete_instance
from chat.think import RetryPolicy, Think
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.fibering import GIVEN, Busy, dies, nothing_scripted, rows, scripted
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

__all__ = ["nothing_scripted"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)

assert issubclass(Busy, Think)  # registers the agent of these tests


def noting(seen: list[Any], *, name: str, failures: int = 0) -> str:
    """A script that notes that it ran, and raises so often first."""

    async def note(payload: Any, fiber: RunningFiber) -> None:
        seen.append((name, fiber.retry_count))
        if fiber.retry_count < failures:
            raise ValueError("not yet")

    return scripted(note, name)


async def test_calls_run_in_order_and_leave_the_queue(busy_room: Room) -> None:
    seen: list[Any] = []
    made = [await busy_room.handle.queue("work", noting(seen, name=name)) for name in ("a", "b", "c")]
    waiting = await busy_room.handle.get_queues()
    assert [(call.id, call.method, call.payload, call.status) for call in waiting] == [
        (made[0], "work", "a", "pending"),
        (made[1], "work", "b", "pending"),
        (made[2], "work", "c", "pending"),
    ]
    assert await busy_room.handle.get_queue(made[1]) == waiting[1]
    await run_until_idle()
    assert seen == [("a", 0), ("b", 0), ("c", 0)]
    assert await busy_room.handle.get_queues() == []
    assert await busy_room.handle.get_queue(made[1]) is None
    assert GIVEN == []  # `on_fiber_complete` is for other background work


async def test_one_runs_at_a_time_however_many_workers_look(busy_room: Room) -> None:
    running: list[str] = []
    most: list[int] = []
    order: list[str] = []

    async def counts(payload: Any, fiber: RunningFiber) -> None:
        running.append(fiber.id)
        most.append(len(running))
        order.append(fiber.id)
        await db(lambda: Fiber.objects.count())
        running.remove(fiber.id)

    scripted(counts)
    made = [await busy_room.handle.queue("work", "script") for _ in range(6)]
    await asyncio.gather(*(run_fiber(pk) for pk in reversed(made)))
    await run_until_idle()
    assert max(most) == 1
    assert order == made


async def test_a_call_that_raises_is_tried_again_before_the_next_one_and_then_fails(busy_room: Room) -> None:
    seen: list[Any] = []
    retry = RetryPolicy(attempts=2, first_seconds=0.01, max_seconds=0.01)
    passing = await busy_room.handle.queue("work", noting(seen, name="passes", failures=1), retry=retry)
    failing = await busy_room.handle.queue("work", noting(seen, name="fails", failures=9), retry=retry)
    await busy_room.handle.queue("work", noting(seen, name="last"))
    await run_until_idle(skip_delays=True)
    assert seen == [("passes", 0), ("passes", 1), ("fails", 0), ("fails", 1), ("last", 0)]
    found = [await busy_room.handle.get_fiber(each) for each in (passing, failing)]
    assert [(each.status, each.retry_count) for each in found if each] == [("completed", 1), ("failed", 2)]


async def test_three_tries_are_the_default_and_the_delays_are_those_of_the_policy(busy_room: Room) -> None:
    seen: list[Any] = []
    await busy_room.handle.queue("work", noting(seen, name="fails", failures=9))
    await run_until_idle(skip_delays=True)
    assert len(seen) == 3
    retry = RetryPolicy(attempts=2, first_seconds=50.0, max_seconds=50.0, jitter_share=0.0)
    call = await busy_room.handle.queue("work", "fails", retry=retry)
    await run_until_idle()
    row = await db(lambda: Fiber.objects.get(pk=call))
    assert row.status == "pending"
    assert 49 < (row.available_at - row.updated_at).total_seconds() < 51


async def test_a_call_whose_worker_dies_keeps_its_place_and_no_hook_decides(make_room: MakeRoom) -> None:
    room = make_room("deciding")
    seen: list[Any] = []
    first = await room.handle.queue("work", scripted(dies))
    await room.handle.queue("work", noting(seen, name="second"))
    await run_until_idle(skip_delays=True)
    done = await room.handle.get_fiber(first)
    assert done is not None
    assert (done.status, done.attempts, done.retry_count) == ("completed", 3, 0)
    row = await db(lambda: Fiber.objects.get(pk=first))
    assert seen == [("second", 0)]
    assert GIVEN == []
    later = await db(lambda: Fiber.objects.exclude(pk=first).get())
    assert later.started_at is not None
    assert row.finished_at is not None
    assert later.started_at >= row.finished_at


async def test_what_waits_is_taken_out_and_what_runs_goes_on(busy_room: Room) -> None:
    started, ended = asyncio.Event(), asyncio.Event()
    seen: list[Any] = []

    async def holds(payload: Any, fiber: RunningFiber) -> None:
        started.set()
        await ended.wait()

    first = await busy_room.handle.queue("work", scripted(holds))
    noting(seen, name="noted")
    second, third = [await busy_room.handle.queue("work", "noted") for _ in range(2)]
    echoed = await busy_room.handle.queue("echo", {"to": "board"})
    task = asyncio.create_task(run_fiber(first))
    async with asyncio.timeout(10):
        await started.wait()
    assert not await busy_room.handle.dequeue(first)
    assert await busy_room.handle.dequeue(second)
    assert not await busy_room.handle.dequeue(second)
    assert not await busy_room.handle.dequeue("unknown")
    assert [call.id for call in await busy_room.handle.get_queues("to", "board")] == [echoed]
    assert await busy_room.handle.get_queues("to", "nobody") == []
    assert await busy_room.handle.dequeue_all_by_method("echo") == 1
    assert [(call.id, call.status) for call in await busy_room.handle.get_queues()] == [
        (first, "running"),
        (third, "pending"),
    ]
    assert await busy_room.handle.dequeue_all() == 1
    ended.set()
    await task
    await run_until_idle()
    assert seen == []
    assert (await busy_room.handle.get_fiber(first)).status == "completed"  # type: ignore[union-attr]


async def test_taking_out_the_first_lets_the_next_one_run(busy_room: Room) -> None:
    seen: list[Any] = []
    retry = RetryPolicy(attempts=2, first_seconds=50.0, max_seconds=50.0)
    first = await busy_room.handle.queue("work", noting(seen, name="waits", failures=9), retry=retry)
    await busy_room.handle.queue("work", noting(seen, name="next"))
    await run_until_idle()
    assert seen == [("waits", 0)]
    assert await busy_room.handle.dequeue(first)
    await run_until_idle()
    assert seen == [("waits", 0), ("next", 0)]


async def test_the_agent_itself_has_the_queue_and_other_conversations_have_theirs(
    busy_room: Room, make_room: MakeRoom
) -> None:
    agent = await db(make_agent, busy_room.key)
    assert isinstance(agent, Think)
    call = await agent.queue("echo", 1)
    assert [each.id for each in await busy_room.handle.get_queues()] == [call]
    other = make_room("deciding")
    assert await other.handle.get_queues() == []
    assert await other.handle.dequeue_all() == 0
    assert not await other.handle.dequeue(call)


async def test_what_cannot_run_is_refused_at_once_and_nothing_is_stored(busy_room: Room, settings: Any) -> None:
    with pytest.raises(FiberMethodMissing):
        await busy_room.handle.queue("missing")
    for retry in (RetryPolicy(attempts=11), RetryPolicy(attempts=2, max_seconds=61.0)):
        with pytest.raises(FiberInvalid, match="tried 1 to 10 times"):
            await busy_room.handle.queue("echo", retry=retry)
    with pytest.raises(FiberInvalid):
        await busy_room.handle.queue("echo", {1, 2})
    assert await rows() == []
    settings.THINK_FIBERS_PER_USER = 1
    await busy_room.handle.queue("echo")
    with pytest.raises(QuotaExceeded):
        await busy_room.handle.queue("echo")


async def test_deleting_the_conversation_empties_its_queue(busy_room: Room) -> None:
    seen: list[Any] = []
    for _ in range(3):
        await busy_room.handle.queue("work", noting(seen, name="noted"))
    assert await db(delete_instance, await db(ensure_instance, busy_room.key))
    await run_until_idle()
    assert seen == []
    assert await rows() == []
