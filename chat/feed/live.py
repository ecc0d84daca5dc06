"""Waiting for further changes of a feed: one watch per feed and process (`chat.instances.watching`).

It looks at once where a conversation's line in its owner's list has changed.
"""

import asyncio
import contextlib
from contextlib import AbstractAsyncContextManager
from typing import Any

from django.db import DatabaseError
from typing_extensions import override

from chat.feed.errors import FeedGone
from chat.feed.reading import last_change
from chat.instances.notifications import list_group
from chat.instances.watching import SharedWatch, SharedWatches
from thinkproject.kernel.aio import db


class FeedWatch(SharedWatch):
    """Wakes the readers of one feed in one process. `last`: number of the last change that was seen."""

    def __init__(self, owner_id: Any) -> None:
        super().__init__(list_group(owner_id))
        self.owner_id = owner_id
        self.last = -1

    async def wait(self, after: int, seconds: float) -> bool:
        """Wait for a change after this one. False where there was none in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.last <= after and not self.is_gone:
                    await self.changed()
        return self.last > after or self.is_gone

    @override
    async def look(self) -> None:
        last = self.last
        try:
            last = await db(last_change, self.owner_id)
        except FeedGone:
            self.is_gone = True
        except DatabaseError:  # it may be there again at the next look
            return
        if self.is_gone or last != self.last:
            self.last = last
            self.wake()


_watches = SharedWatches(FeedWatch)


def watching_feed(owner_id: Any) -> AbstractAsyncContextManager[FeedWatch]:
    """The watch of a feed, which lasts as long as its readers."""
    return _watches.of(owner_id)
