"""One watch per thing and process, which wakes all who read it there. No reader holds a database connection.

A watch listens for hints of the channel layer and looks at the rows every second besides: a hint may be lost, and
there may be no layer.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Hashable
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from chat.instances.waiting import notifications

POLL_SECONDS: Final = 1.0


class SharedWatch(ABC):
    """Looks until its last reader has left, or what it watches is gone. `group`: where the hints come."""

    def __init__(self, group: str) -> None:
        self.is_gone = False
        self.readers = 0
        self.task: asyncio.Task[None] | None = None
        self._group = group
        self._changed = asyncio.Event()

    @abstractmethod
    async def look(self) -> None:
        """Read how it stands; `wake` the readers where it has changed, and set `is_gone` where it is no more."""

    def wake(self) -> None:
        """Have all who wait look again."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def changed(self) -> None:
        """Wait until the next `wake`."""
        await self._changed.wait()

    async def run(self) -> None:
        """Listen and look."""
        async with notifications(self._group) as hinted:
            while not self.is_gone:
                hinted.clear()
                await self.look()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await hinted.wait()


Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept", bound=SharedWatch)


class SharedWatches(Generic[Key, Kept]):
    """The watches of one kind in this process, made for their first readers."""

    def __init__(self, make: Callable[[Key], Kept]) -> None:
        self._make = make
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Key, Kept]] = WeakKeyDictionary()

    @contextlib.asynccontextmanager
    async def of(self, key: Key) -> AsyncIterator[Kept]:
        """The watch of a key, which lasts as long as its readers."""
        watches = self._by_loop.setdefault(asyncio.get_running_loop(), {})
        watch = watches.get(key)
        if watch is None or watch.is_gone:
            watch = watches[key] = self._make(key)
            watch.task = asyncio.create_task(watch.run())
        watch.readers += 1
        try:
            yield watch
        finally:
            watch.readers -= 1
            if not watch.readers:
                if watches.get(key) is watch:
                    del watches[key]
                assert watch.task is not None
                watch.task.cancel()
                await asyncio.gather(watch.task, return_exceptions=True)
