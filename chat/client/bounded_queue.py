"""A bounded queue of unread items: a slow reader slows the socket down instead of filling memory.

Each `BoundedQueue` is what one `async for` reads. While one of them is full the client reads nothing more from the
socket, so that the server waits (it keeps nothing for a slow socket but the place in the log). One exception: while the
client awaits an answer of the server, everything is read, else a loop that calls the server for each item would wait
for ever.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

T = TypeVar("T")

UNREAD_ITEMS: Final = 1024
UNREAD_CHARS: Final = 1024 * 1024
MERGED_CHARS: Final = 16 * 1024
"""A merged item does not grow beyond this."""


class Backpressure:
    """Whether the next frame may be read from the socket."""

    def __init__(self) -> None:
        self._full: set[BoundedQueue[object]] = set()
        self._awaited = 0
        self._changed = asyncio.Event()

    def note(self, queue: "BoundedQueue[object]") -> None:
        """The queue has changed."""
        if queue.is_full:
            self._full.add(queue)
        elif queue in self._full:
            self._full.discard(queue)
            self._changed.set()

    @contextmanager
    def awaiting(self) -> Iterator[None]:
        """Read from the socket inside this block even if a reader is slow: a caller waits for a later frame."""
        self._awaited += 1
        self._changed.set()
        try:
            yield
        finally:
            self._awaited -= 1

    @property
    def is_closed(self) -> bool:
        """Whether a reader is so far behind that nothing more may be read."""
        return bool(self._full) and self._awaited == 0

    async def passed(self) -> None:
        """Wait until reading on is right."""
        while self.is_closed:
            self._changed.clear()
            await self._changed.wait()


class BoundedQueue(Generic[T]):
    """Items for one reader, in order, each once. Units: `size` of an item in characters.

    `is_optional`: it may never be read, so it applies no backpressure and is dropped when it is full.
    """

    def __init__(self, backpressure: Backpressure, *, merge: Callable[[T, T], T | None] | None = None) -> None:
        self._backpressure = backpressure
        self._merge = merge
        self._items: deque[tuple[T, int]] = deque()
        self._size = 0
        self._has_ended = False
        self._error: Exception | None = None
        self._news = asyncio.Event()
        self.is_optional = False
        self.is_read = False
        self.was_let_go = False

    @property
    def is_full(self) -> bool:
        """Whether its reader is too far behind."""
        return len(self._items) >= UNREAD_ITEMS or self._size >= UNREAD_CHARS

    def put(self, item: T, size: int = 0) -> None:
        """Append an item, merged with the last unread one where both allow it."""
        if self._has_ended or self.was_let_go:
            return
        if self._items and self._merge is not None:
            last, last_size = self._items[-1]
            merged = self._merge(last, item) if last_size + size <= MERGED_CHARS else None
            if merged is not None:
                self._items[-1] = (merged, last_size + size)
                self._size += size
                self._wake()
                return
        self._items.append((item, size))
        self._size += size
        if self.is_full and self.is_optional and not self.is_read:
            self.was_let_go = True
            self._items.clear()
            self._size = 0
        self._wake()

    def end(self, error: Exception | None = None) -> None:
        """Nothing follows; the reader gets the error after the items."""
        self._has_ended, self._error = True, self._error or error
        self._wake()

    def let_go(self) -> None:
        """Stop collecting: there is no reader any more."""
        self.was_let_go = True
        self._items.clear()
        self._size = 0
        self._wake()

    async def read(self) -> AsyncGenerator[T, None]:
        """Iterate over the items. Errors: the error that closed the queue."""
        self.is_read = True
        try:
            while True:
                while self._items:
                    item, size = self._items.popleft()
                    self._size -= size
                    self._backpressure.note(self)  # type: ignore[arg-type]  # only its fullness counts
                    yield item
                if self._has_ended:
                    break
                self._news.clear()
                await self._news.wait()
        finally:
            self.is_read = False
            self.let_go()
        if self._error is not None:
            raise self._error

    def _wake(self) -> None:
        self._news.set()
        self._backpressure.note(self)  # type: ignore[arg-type]  # as above
