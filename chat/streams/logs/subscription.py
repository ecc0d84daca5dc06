"""One follower's end of the live stream: a bounded queue that never lies.

When it overflows, or when the connection behind it was lost, it holds nothing but the duty to re-read from the offset.
"""

import asyncio
from collections import deque
from typing import NamedTuple

from chat.streams.records import Published


class Received(NamedTuple):
    """Events since the last read; none: silence for the idle time."""

    batches: list[Published]
    must_reread: bool
    is_closed: bool

    @property
    def is_silence(self) -> bool:
        """Whether nothing was received."""
        return not (self.batches or self.must_reread or self.is_closed)


class Subscription:
    """Queue between the shared subscriber and one follower, both on one loop."""

    def __init__(self, max_batches: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._max_batches = max(1, max_batches)
        self._batches: deque[Published] = deque()
        self._must_reread = False
        self._is_closed = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self.overflows = 0  # how often the follower was too slow

    def push(self, published: Published) -> None:
        """Queue a batch, or drop everything and ask for a re-read when the follower is too slow."""
        if len(self._batches) >= self._max_batches:
            self._batches.clear()
            self._must_reread = True
            self.overflows += 1
        elif not self._must_reread:
            self._batches.append(published)
        self._wake()

    def interrupt(self) -> None:
        """Mark that records may have been missed."""
        self._batches.clear()
        self._must_reread = True
        self._wake()

    def wake(self) -> None:
        """Mark that the stream was closed."""
        self._is_closed = True
        self._wake()

    def clear(self) -> None:
        """Drop queued records before a read of the log."""
        self._batches.clear()
        self._must_reread = False

    async def wait(self, idle_seconds: float) -> Received:
        """Return the received records, after the idle time at the latest."""
        if not (self._batches or self._must_reread or self._is_closed):
            self._waiter = self._loop.create_future()
            self._deadline = self._loop.time() + idle_seconds
            if self._timer is None:
                self._timer = self._loop.call_at(self._deadline, self._tick)
            try:
                await self._waiter
            finally:
                self._waiter = None
        received = Received(list(self._batches), self._must_reread, self._is_closed)
        self.clear()
        self._is_closed = False
        return received

    def stop(self) -> None:
        """Drop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _tick(self) -> None:
        # One timer per follower that looks at a moving deadline: arming one per wait costs more than the wait.
        self._timer = None
        if self._waiter is None:
            return
        if self._loop.time() >= self._deadline:
            self._wake()
        else:
            self._timer = self._loop.call_at(self._deadline, self._tick)
