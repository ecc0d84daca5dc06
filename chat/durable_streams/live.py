"""Waiting at the end of a stream, without a database connection.

One watch per stream and process listens for hints of the channel layer and looks at the row every second besides: a
hint may be lost, and there may be no layer. Readers at one position share what is read for them.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final
from weakref import WeakKeyDictionary

from django.db import DatabaseError

from chat.durable_streams.errors import StreamRefused
from chat.durable_streams.finding import StreamState, state_for_readers
from chat.durable_streams.reading import StreamRead, read_next
from chat.instances.notifications import stream_group
from chat.instances.waiting import notifications
from chat.models import DurableStream
from thinkproject.kernel.aio import db

POLL_SECONDS: Final = 1.0


class Watch:
    """Wakes the readers of one stream in one process. `version` rises when the stream may have changed."""

    def __init__(self, stream_id: int) -> None:
        self.stream_id = stream_id
        self.version = 0
        self.readers = 0
        self.is_gone = False
        self.task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._reads: dict[int, asyncio.Task[StreamRead]] = {}

    async def wait(self, version: int) -> None:
        """Wait for a version above this one."""
        while self.version <= version:
            await self._changed.wait()

    async def read(self, position: int) -> StreamRead | None:
        """Read from a position as the stream is at this version; nothing once it is gone."""
        if self.is_gone:
            return None
        reading = self._reads.get(position)
        if reading is None:
            reading = self._reads[position] = asyncio.ensure_future(db(read_next, self.stream_id, position))
        try:
            return await asyncio.shield(reading)
        except DurableStream.DoesNotExist:
            self.is_gone = True
            return None

    def change(self) -> None:
        """Wake all readers."""
        self.version += 1
        self._reads = {}
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def run(self) -> None:
        """Listen and look until the last reader has left."""
        seen = None
        async with notifications(stream_group(self.stream_id)) as hinted:
            while not self.is_gone:
                hinted.clear()
                seen = await self._look(seen)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await hinted.wait()

    async def _look(self, seen: StreamState | None) -> StreamState | None:
        try:
            state = await db(state_for_readers, self.stream_id)
        except StreamRefused:
            self.is_gone = True
            state = None
        except DatabaseError:  # it may be there again at the next look
            return seen
        if self.is_gone or state != seen:
            self.change()
        return state


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, Watch]] = WeakKeyDictionary()


@contextlib.asynccontextmanager
async def watching(stream_id: int) -> AsyncIterator[Watch]:
    """The watch of a stream, which lasts as long as its readers."""
    watches = _watches.setdefault(asyncio.get_running_loop(), {})
    watch = watches.get(stream_id)
    if watch is None or watch.is_gone:
        watch = watches[stream_id] = Watch(stream_id)
        watch.task = asyncio.create_task(watch.run())
    watch.readers += 1
    try:
        yield watch
    finally:
        watch.readers -= 1
        if not watch.readers:
            if watches.get(stream_id) is watch:
                del watches[stream_id]
            assert watch.task is not None
            watch.task.cancel()
            await asyncio.gather(watch.task, return_exceptions=True)
