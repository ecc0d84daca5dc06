"""Waiting for further changes of a feed, without a database connection.

One watch per feed and process looks at its head every second, and at once where a conversation's line in its owner's
list has changed. All readers of the feed share it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final
from weakref import WeakKeyDictionary

from django.db import DatabaseError

from chat.feed.errors import FeedGone
from chat.feed.reading import last_change
from chat.instances.notifications import list_group
from chat.instances.waiting import notifications
from thinkproject.kernel.aio import db

POLL_SECONDS: Final = 1.0


class FeedWatch:
    """Wakes the readers of one feed in one process. `last`: number of the last change that was seen."""

    def __init__(self, owner_id: Any) -> None:
        self.owner_id = owner_id
        self.last = -1
        self.is_gone = False
        self.readers = 0
        self.task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def wait(self, after: int, seconds: float) -> bool:
        """Wait for a change after this one. False where there was none in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.last <= after and not self.is_gone:
                    await self._changed.wait()
        return self.last > after or self.is_gone

    async def run(self) -> None:
        """Look until the last reader has left, or the feed was closed."""
        async with notifications(list_group(self.owner_id)) as hinted:
            while not self.is_gone:
                hinted.clear()
                await self._look()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await hinted.wait()

    async def _look(self) -> None:
        last = self.last
        try:
            last = await db(last_change, self.owner_id)
        except FeedGone:
            self.is_gone = True
        except DatabaseError:  # it may be there again at the next look
            return
        if self.is_gone or last != self.last:
            self.last = last
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, FeedWatch]] = WeakKeyDictionary()


@contextlib.asynccontextmanager
async def watching_feed(owner_id: Any) -> AsyncIterator[FeedWatch]:
    """The watch of a feed, which lasts as long as its readers."""
    watches = _watches.setdefault(asyncio.get_running_loop(), {})
    watch = watches.get(owner_id)
    if watch is None or watch.is_gone:
        watch = watches[owner_id] = FeedWatch(owner_id)
        watch.task = asyncio.create_task(watch.run())
    watch.readers += 1
    try:
        yield watch
    finally:
        watch.readers -= 1
        if not watch.readers:
            if watches.get(owner_id) is watch:
                del watches[owner_id]
            assert watch.task is not None
            watch.task.cancel()
            await asyncio.gather(watch.task, return_exceptions=True)
