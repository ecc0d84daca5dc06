"""A worker process that stops, and what it does while it lives."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from django.db import connection

from fibers import selectors, services
from fibers.context import FiberContext
from fibers.core.states import Interrupt
from fibers.execution import runner
from fibers.execution.runner import run_fiber
from fibers.execution.taking import NameTaker
from fibers.execution.worker import Worker
from fibers.execution.worker_loop import shared_loop
from fibers.models import Fiber
from fibers.process.runs import registry as held
from fibers.queue import names
from fibers.registry import durable
from fibers.testing import claim_for_test, expire_lease

pytestmark = pytest.mark.django_db(transaction=True)

seen: list[Any] = []
unblocked = threading.Event()


@durable("worker.wait")
async def wait(ctx: FiberContext) -> None:
    seen.append("started")
    try:
        await asyncio.sleep(20)  # until it is interrupted
    except asyncio.CancelledError:
        await asyncio.sleep(0.2)  # the end takes a while: closing waits for it
        await ctx.record("flushed", 1)
        seen.append(ctx.interrupt)
        raise


@durable("worker.note")
async def note(ctx: FiberContext) -> None:
    seen.append(ctx.payload)


@durable("worker.block")
async def block(ctx: FiberContext) -> None:
    seen.append("started")
    unblocked.wait(20)  # the mistake under test


@pytest.fixture
def worker(settings: Any) -> Iterator[Worker]:
    seen.clear()
    settings.THINK_FIBER_SWEEP_SECONDS = 0.1
    worker = Worker(held)
    worker.start()
    yield worker
    worker.close()
    held.is_closing = False


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def run_elsewhere(name: str) -> tuple[Fiber, Any]:
    fiber = services.start_fiber(name, 1)
    running = asyncio.run_coroutine_threadsafe(run_fiber(fiber.pk), shared_loop())
    wait_for(lambda: bool(seen))
    return fiber, running


@pytest.fixture
def taker(redis_url: str, settings: Any) -> Iterator[Callable[..., NameTaker]]:
    """Makes takers that have begun; they stop at the end."""
    settings.THINK_FIBER_DISPATCH = "celery"
    made: list[NameTaker] = []

    def make(room: int) -> NameTaker:
        made.append(NameTaker(redis_url, [""], room, shared_loop()))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        each.stop()
    for each in made:
        each.join()


@pytest.fixture
def names_in(redis_url: str) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(redis_url) as client:
        yield client


def leave(client: "redis.Redis", count: int) -> list[str]:
    wait_for(lambda: bool(client.exists(names.taken_key(""))))
    return [services.start_fiber("worker.note", number).pk for number in range(count)]


def test_names_are_taken_and_their_fibers_run(
    taker: Callable[..., NameTaker], worker: Worker, names_in: "redis.Redis"
) -> None:
    taker(room=4)
    left = leave(names_in, 12)
    wait_for(lambda: len(seen) == 12)
    wait_for(lambda: {selectors.get_fiber(pk).status for pk in left} == {"completed"})
    assert sorted(seen) == list(range(12))


def test_no_more_is_taken_than_there_is_room_for(
    taker: Callable[..., NameTaker], worker: Worker, names_in: "redis.Redis"
) -> None:
    taker(room=1)
    wait_for(lambda: bool(names_in.exists(names.taken_key(""))))
    first = services.start_fiber("worker.wait", 1)
    wait_for(lambda: seen == ["started"])
    left = leave(names_in, 2)
    assert [name.decode() for name in names_in.lrange(names.list_of(""), 0, -1)] == left  # type: ignore[union-attr]
    services.cancel_fiber(first.pk)
    wait_for(lambda: seen[-2:] == [0, 1])


def test_names_wait_for_the_next_worker(
    taker: Callable[..., NameTaker], worker: Worker, names_in: "redis.Redis"
) -> None:
    stopping = taker(room=4)
    wait_for(lambda: bool(names_in.exists(names.taken_key(""))))
    stopping.stop()
    stopping.join()
    left = leave(names_in, 2)
    assert names_in.llen(names.list_of("")) == 2
    taker(room=4)
    wait_for(lambda: {selectors.get_fiber(pk).status for pk in left} == {"completed"})


def test_closing_interrupts_what_runs_and_hands_it_back_unspent(worker: Worker) -> None:
    fiber, running = run_elsewhere("worker.wait")
    started = time.monotonic()
    worker.close()
    running.result(timeout=10)
    assert time.monotonic() - started < 10, "what waits for twenty seconds was interrupted"
    assert seen == ["started", Interrupt.SHUTDOWN]
    row = selectors.get_fiber(fiber.pk)
    assert (row.status, row.reason, row.recoveries, row.retries, row.worker) == ("pending", "shutdown", 0, 0, "")
    assert [step.step_key for step in selectors.history(fiber.pk)] == ["flushed"]
    assert row.dispatched_at is None  # the next sweep of any worker sends it
    assert claim_for_test(fiber.pk) is not None


def test_a_function_that_blocks_the_loop_cannot_keep_its_lease(worker: Worker, monkeypatch: Any) -> None:
    monkeypatch.setattr(runner, "GRACE_SECONDS", 0.2)
    unblocked.clear()
    fiber, running = run_elsewhere("worker.block")
    try:
        worker.close()
        assert selectors.get_fiber(fiber.pk).status == "pending"
    finally:
        unblocked.set()
    running.result(timeout=15)
    assert selectors.get_fiber(fiber.pk).status == "pending"


def test_a_closing_worker_claims_nothing(worker: Worker) -> None:
    fiber = services.start_fiber("worker.wait", 1)
    worker.close()
    asyncio.run_coroutine_threadsafe(run_fiber(fiber.pk), shared_loop()).result(timeout=15)
    row = selectors.get_fiber(fiber.pk)
    assert (row.status, row.attempt, row.dispatched_at) == ("pending", 0, None)


def test_a_worker_sweeps_by_itself(worker: Worker) -> None:
    fiber = services.start_fiber("worker.wait", 1)
    claim_for_test(fiber.pk)
    expire_lease(fiber.pk)
    wait_for(lambda: selectors.get_fiber(fiber.pk).status == "pending")


def test_closing_ends_the_threads(worker: Worker) -> None:
    names = {"think-sweeper", "think-interrupts"}
    assert {thread.name for thread in threading.enumerate()} & names == names
    worker.close()
    assert {thread.name for thread in threading.enumerate()} & names == set()
    connection.ensure_connection()
