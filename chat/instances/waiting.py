"""Wait until something holds in the database, woken by notifications.

Notifications may be lost, so the condition is asked again after silence: soon at first, then less and less often. A
waiter holds no thread and no connection to the database.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import redis
from channels.layers import get_channel_layer

logger = logging.getLogger(__name__)

FIRST_SILENCE_SECONDS = 0.25
LONGEST_SILENCE_SECONDS = 5.0
_LAYER_SECONDS = 2.0


async def wait_until(
    condition: Callable[[], Awaitable[bool]], *, group: str, timeout_seconds: float | None = None
) -> bool:
    """Ask until the condition holds: at once, after each notification to the group, and after silence.

    False when it did not hold within `timeout_seconds`; none is no limit. Errors: those of the condition.
    """
    if await condition():
        return True
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    silence = FIRST_SILENCE_SECONDS
    async with notifications(group) as notified:
        while not await condition():  # asked again first: a notification may have come before we listened
            patience = silence if deadline is None else min(silence, deadline - time.monotonic())
            if patience <= 0:
                return False
            try:
                async with asyncio.timeout(patience):
                    await notified.wait()
            except TimeoutError:
                silence = min(2 * silence, LONGEST_SILENCE_SECONDS)
            notified.clear()
    return True


@asynccontextmanager
async def notifications(group: str) -> AsyncIterator[asyncio.Event]:
    """Listen to a group; the event is set by each message. Without a channel layer it is never set.

    Operations of the layer run in a task that is never cancelled: one that is cut in the middle can leave the layer's
    connection locked for all. So a waiter that is cancelled, or given up on, leaves at once and the task cleans up.
    """
    layer = get_channel_layer()
    listener = _Listener()
    try:
        if layer is not None:
            task = asyncio.create_task(listener.run(layer, group))
            _listening.add(task)
            task.add_done_callback(_listening.discard)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAYER_SECONDS):
                    await listener.is_ready.wait()
        yield listener.notified
    finally:
        listener.is_over.set()


async def leave_all() -> None:
    """Wait until those who listened on the running loop have left their groups: before the loop ends."""
    mine = {task for task in _listening if task.get_loop() is asyncio.get_running_loop()}
    if mine:
        await asyncio.wait(mine, timeout=_LAYER_SECONDS)


_listening: set[asyncio.Task[None]] = set()


class _Listener:
    """One waiter's membership in a group."""

    def __init__(self) -> None:
        self.notified = asyncio.Event()
        self.is_ready = asyncio.Event()  # it listens, or cannot
        self.is_over = asyncio.Event()

    async def run(self, layer: Any, group: str) -> None:
        """Listen until it is over."""
        try:
            channel: str = await layer.new_channel()
            await layer.group_add(group, channel)
            self.is_ready.set()
            await self._receive(layer, channel)
            await layer.group_discard(group, channel)
        except (OSError, redis.RedisError) as error:
            logger.warning("waits without notifications", extra={"action": "wait_unnotified", "error": repr(error)})
        finally:
            self.is_ready.set()

    async def _receive(self, layer: Any, channel: str) -> None:
        ending = asyncio.create_task(self.is_over.wait())
        while not ending.done():
            receiving = asyncio.create_task(layer.receive(channel))
            await asyncio.wait({receiving, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not receiving.done():
                receiving.cancel()  # gives up the channel
                await asyncio.wait({receiving})
                return
            receiving.result()
            self.notified.set()
