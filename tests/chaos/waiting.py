"""Waiting for what browsers and databases do in their own time, with an end."""

import asyncio
import time
from collections.abc import Awaitable, Callable


async def wait_until(holds: Callable[[], Awaitable[bool]], *, seconds: float, pause: float = 0.05) -> bool:
    """Ask again and again. False when it did not become so."""
    deadline = time.monotonic() + seconds
    while not await holds():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(pause)  # between two looks
    return True
