"""What a feed waits for ends with a cancel, also in the moment in which the change comes."""

import asyncio

from chat.realtime.turn_feed import _wait


async def test_a_cancel_that_comes_with_a_change_ends_the_wait() -> None:
    async def is_over() -> bool:
        return False

    changed = asyncio.Event()
    waiting = asyncio.create_task(_wait(is_over, changed))
    await asyncio.sleep(0.05)
    changed.set()
    waiting.cancel()
    await asyncio.wait({waiting}, timeout=15)
    assert waiting.cancelled()
