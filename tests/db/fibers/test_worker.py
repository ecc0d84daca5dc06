"""A worker process that stops, and what it does while it lives."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from fibers import selectors, services
from fibers.context import FiberContext
from fibers.core.states import Interrupt
from fibers.execution import runner
from fibers.execution.runner import run_fiber
from fibers.execution.worker import Worker
from fibers.execution.worker_loop import shared_loop
from fibers.models import Fiber
from fibers.process.running import registry as held
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


def test_closing_interrupts_what_runs_and_hands_it_back_unspent(worker: Worker) -> None:
    fiber, running = run_elsewhere("worker.wait")
    started = time.monotonic()
    worker.close()
    running.result(timeout=1)
    assert time.monotonic() - started < 2
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
    running.result(timeout=5)
    assert selectors.get_fiber(fiber.pk).status == "pending"


def test_a_closing_worker_claims_nothing(worker: Worker) -> None:
    fiber = services.start_fiber("worker.wait", 1)
    worker.close()
    asyncio.run_coroutine_threadsafe(run_fiber(fiber.pk), shared_loop()).result(timeout=5)
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
