"""Throttles transcripts after changes outside of turns: the first is sent immediately, later ones are batched."""

import asyncio
from contextlib import suppress
from typing import Final

PAUSE_SECONDS: Final = 0.1
"""Changes within this time of the last transcript share the next one: each transcript is the whole window."""


class PathChanges:
    """The changes that one connection has not been shown. `changed` is set by each change, and by other events."""

    def __init__(self, changed: asyncio.Event) -> None:
        self._changed = changed
        self._is_pending = False
        self._next_at = 0.0

    def note(self) -> None:
        """The path changed."""
        self._is_pending = True
        self._changed.set()

    def take(self) -> bool:
        """Whether the path is to be shown now; then it counts as shown."""
        now = asyncio.get_running_loop().time()
        if not self._is_pending or now < self._next_at:
            return False
        self._is_pending, self._next_at = False, now + PAUSE_SECONDS
        return True

    async def wait(self) -> None:
        """Wait until the path is due or another event comes."""
        left = self._next_at - asyncio.get_running_loop().time() if self._is_pending else None
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._changed.wait()
