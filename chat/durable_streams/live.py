"""Waiting at the end of a stream: one watch per stream and process (`chat.instances.watching`).

Readers at one position share what is read for them.
"""

import asyncio
from contextlib import AbstractAsyncContextManager

from django.db import DatabaseError
from typing_extensions import override

from chat.durable_streams.errors import StreamRefused
from chat.durable_streams.finding import StreamState, state_for_readers
from chat.durable_streams.reading import StreamRead, read_next
from chat.instances.notifications import stream_group
from chat.instances.watching import SharedWatch, SharedWatches
from chat.models import DurableStream
from thinkproject.kernel.aio import db


class Watch(SharedWatch):
    """Wakes the readers of one stream in one process. `version` rises when the stream may have changed."""

    def __init__(self, stream_id: int) -> None:
        super().__init__(stream_group(stream_id))
        self.stream_id = stream_id
        self.version = 0
        self._seen: StreamState | None = None
        self._reads: dict[int, asyncio.Task[StreamRead]] = {}

    async def wait(self, version: int) -> None:
        """Wait for a version above this one."""
        while self.version <= version:
            await self.changed()

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
        self.wake()

    @override
    async def look(self) -> None:
        state: StreamState | None = None
        try:
            state = await db(state_for_readers, self.stream_id)
        except StreamRefused:
            self.is_gone = True
        except DatabaseError:  # it may be there again at the next look
            return
        if self.is_gone or state != self._seen:
            self.change()
        self._seen = state


_watches = SharedWatches(Watch)


def watching(stream_id: int) -> AbstractAsyncContextManager[Watch]:
    """The watch of a stream, which lasts as long as its readers."""
    return _watches.of(stream_id)
