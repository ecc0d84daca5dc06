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
_LOST = (OSError, TimeoutError, redis.RedisError)


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
    async with _notifications(group) as notified:
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
async def _notifications(group: str) -> AsyncIterator[asyncio.Event]:
    """Listen to a group; the event is set by each message. Without a channel layer it is never set."""
    notified = asyncio.Event()
    layer = get_channel_layer()
    channel = None if layer is None else await _join(layer, group)
    if channel is None:
        yield notified
        return
    # A receive that is cancelled gives up its channel, so one task receives until the end.
    listener = asyncio.create_task(_listen(layer, channel, notified))
    try:
        yield notified
    finally:
        await _leave(layer, group, channel)
        listener.cancel()
        await asyncio.wait({listener})


async def _join(layer: Any, group: str) -> str | None:
    try:
        async with asyncio.timeout(_LAYER_SECONDS):
            channel: str = await layer.new_channel()
            await layer.group_add(group, channel)
            return channel
    except _LOST as error:
        logger.warning("waits without notifications", extra={"action": "wait_unnotified", "error": repr(error)})
        return None


async def _leave(layer: Any, group: str, channel: str) -> None:
    with suppress(*_LOST):
        async with asyncio.timeout(_LAYER_SECONDS):
            await layer.group_discard(group, channel)


async def _listen(layer: Any, channel: str, notified: asyncio.Event) -> None:
    while True:
        try:
            await layer.receive(channel)
        except _LOST as error:
            logger.warning("notifications lost", extra={"action": "wait_unnotified", "error": repr(error)})
            return
        notified.set()
