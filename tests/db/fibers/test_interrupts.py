"""Cancel reaches a fiber that runs in another process, without waiting for a heartbeat."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.db.models.functions import Now

from fibers import selectors, services
from fibers.context import FiberContext
from fibers.core.states import Interrupt
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from fibers.process import interrupts
from fibers.process.heartbeat import heartbeat
from fibers.process.runs import registry as held
from fibers.registry import durable
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)

seen: list[Any] = []


@durable("interrupts.wait")
async def wait(ctx: FiberContext) -> None:
    seen.append("started")
    try:
        await asyncio.sleep(ctx.payload)  # until it is interrupted
    finally:
        seen.append(ctx.interrupt)


@pytest.fixture
def interrupt_listener(redis_url: str, settings: Any) -> Iterator[interrupts.Listener]:
    settings.REDIS_URL = redis_url
    settings.THINK_FIBER_HEARTBEAT_SECONDS = 60.0
    listener = interrupts.Listener(redis_url)
    listener.start()
    assert listener.is_listening.wait(15)
    yield listener
    listener.stop()
    listener.join()


@pytest.fixture
async def running_fiber() -> AsyncIterator[Any]:
    """A fiber that runs in this process: its id and the task that runs it."""
    seen.clear()
    fiber = await db(services.start_fiber, "interrupts.wait", 20)
    task = asyncio.create_task(run_fiber(fiber.pk))
    async with asyncio.timeout(15):
        while not seen:  # noqa: ASYNC110 - a task of its own does it
            await asyncio.sleep(0.01)
    yield fiber.pk, task
    task.cancel()
    await task


def flag(fiber_id: str) -> None:
    Fiber.objects.filter(pk=fiber_id).update(cancel_requested_at=Now())


async def test_a_notification_from_another_process_reaches_the_task_within_a_second(
    interrupt_listener: interrupts.Listener, running_fiber: Any, redis_url: str
) -> None:
    fiber_id, task = running_fiber
    await db(flag, fiber_id)
    started = time.monotonic()
    with redis.Redis.from_url(redis_url) as other:
        other.publish(interrupts.CHANNEL, fiber_id)
    async with asyncio.timeout(15):
        await task
    assert time.monotonic() - started < 1
    assert seen == ["started", Interrupt.CANCEL]
    assert (await db(selectors.get_fiber, fiber_id)).status == "cancelled"


async def test_a_notification_without_a_requested_cancel_changes_nothing(running_fiber: Any) -> None:
    fiber_id, task = running_fiber
    await db(interrupts.answer, fiber_id)
    await db(interrupts.answer, "fib_unknown")
    await asyncio.sleep(0)  # an interrupt would have come before this: it is called on this loop
    assert seen == ["started"]
    assert not task.done()


async def test_without_redis_the_notification_works_inside_the_process(running_fiber: Any, settings: Any) -> None:
    settings.REDIS_URL = ""
    settings.THINK_FIBER_HEARTBEAT_SECONDS = 60.0
    fiber_id, task = running_fiber
    await db(services.cancel_fiber, fiber_id)
    async with asyncio.timeout(15):
        await task


async def test_without_any_notification_the_heartbeat_reads_the_flag(running_fiber: Any, settings: Any) -> None:
    settings.THINK_FIBER_HEARTBEAT_SECONDS = 60.0
    heartbeat.ensure()
    fiber_id, task = running_fiber
    await db(flag, fiber_id)
    settings.THINK_FIBER_HEARTBEAT_SECONDS = 0.2
    heartbeat.ensure()  # wakes the thread, so that it sees the shorter interval
    async with asyncio.timeout(15):
        await task


def test_ringing_with_redis_down_raises_nothing(settings: Any, tmp_path: Path) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    fiber = services.start_fiber("interrupts.wait", 1)
    Fiber.objects.filter(pk=fiber.pk).update(status="running")
    started = time.monotonic()
    assert services.cancel_fiber(fiber.pk) is True
    assert time.monotonic() - started < 10


def test_a_notification_reaches_the_other_processes(redis_url: str, settings: Any) -> None:
    settings.REDIS_URL = redis_url
    with redis.Redis.from_url(redis_url) as other, other.pubsub() as pubsub:
        pubsub.subscribe(interrupts.CHANNEL)
        assert pubsub.get_message(timeout=15)["type"] == "subscribe"
        interrupts.notify("fib_1")
        assert pubsub.get_message(timeout=15)["data"] == b"fib_1"


def test_a_notification_during_the_claim_is_received_by_the_run() -> None:
    seen.clear()

    async def claim_and_ring() -> None:
        fiber = await db(services.start_fiber, "interrupts.wait", 20)
        add = held.add

        def ring_first(run: Any) -> bool:
            held.signalled(fiber.pk)  # between the claim's commit and here
            return add(run)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(held, "add", ring_first)
            async with asyncio.timeout(15):
                await run_fiber(fiber.pk)

    asyncio.run(claim_and_ring())
    assert seen == ["started", Interrupt.CANCEL]
