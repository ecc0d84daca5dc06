"""What waits for a change ends when it is cancelled, also in the moment in which the change comes."""

import asyncio

from chat.realtime.turn_feed import _wait
from fibers.execution.inline import running
from fibers.queue.dispatch import dispatch_now


async def test_a_cancel_that_comes_with_a_change_ends_the_wait() -> None:
    async def is_over() -> bool:
        return False

    changed = asyncio.Event()
    waiting = asyncio.create_task(_wait(is_over, changed))
    await asyncio.sleep(0.05)
    changed.set()
    waiting.cancel()
    await asyncio.wait({waiting}, timeout=2)
    assert waiting.cancelled()


async def test_a_local_runner_ends_in_the_moment_of_a_dispatch() -> None:
    looked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def look() -> list[str]:
        loop.call_soon_threadsafe(looked.set)
        return []

    async with asyncio.timeout(5) as limit:
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

    async with asyncio.timeout(5), running(look, 60):
        await looks.get()
        await asyncio.sleep(0.05)
        dispatch_now([])
        await looks.get()
