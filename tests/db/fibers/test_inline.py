"""Fibers that run on the loop that starts them: woken by a dispatch, and ended whenever their block ends."""

import asyncio

import pytest

from fibers.execution.own_worker import running
from fibers.queue.dispatch import dispatch_now

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_local_runner_ends_in_the_moment_of_a_dispatch() -> None:
    looked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def look() -> list[str]:
        loop.call_soon_threadsafe(looked.set)
        return []

    async with asyncio.timeout(15) as limit:
        async with running(look, 60):
            await looked.wait()
            await asyncio.sleep(0.05)
            dispatch_now([])
            await asyncio.sleep(0)  # it is noticed, and the cancel comes before the runner goes on
    assert not limit.expired()


async def test_a_dispatch_wakes_a_local_runner_at_once() -> None:
    looks: asyncio.Queue[None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def look() -> list[str]:
        loop.call_soon_threadsafe(looks.put_nowait, None)
        return []

    async with asyncio.timeout(15), running(look, 60):
        await looks.get()
        await asyncio.sleep(0.05)
        dispatch_now([])
        await looks.get()
