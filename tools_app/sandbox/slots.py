"""Slots for runs: a number for a process, and a smaller one for each user, whose further runs wait for their first."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tools_app.errors import SandboxUnavailable


class FairSlots:
    """Slots for runs of one event loop, given in the order of arrival; a run whose share is used up waits longer."""

    def __init__(self, *, total: int, per_share: int) -> None:
        self._total = total
        self._per_share = per_share
        self._running: Counter[str] = Counter()
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    @property
    def running(self) -> int:
        """Runs that hold a slot."""
        return self._running.total()

    @asynccontextmanager
    async def slot(self, share: str, *, seconds: float) -> AsyncIterator[None]:
        """Hold a slot. Errors: `SandboxUnavailable` when none was free in so many seconds."""
        await self._acquire(share, seconds)
        try:
            yield
        finally:
            self._running[share] -= 1
            if not self._running[share]:
                del self._running[share]
            self._serve()

    async def _acquire(self, share: str, seconds: float) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (share, turn)
        self._waiting.append(entry)
        self._serve()
        try:
            async with asyncio.timeout(seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # served and given up in the same moment
                self._running[share] -= 1
                self._serve()
            elif entry in self._waiting:
                self._waiting.remove(entry)
            if isinstance(error, TimeoutError):
                raise SandboxUnavailable("Too much code runs at the moment. Try again later.") from error
            raise

    def _serve(self) -> None:
        kept: deque[tuple[str, asyncio.Future[None]]] = deque()
        while self._waiting:
            share, turn = self._waiting.popleft()
            if turn.done():
                continue
            has_room = self._running.total() < self._total
            if has_room and (not share or self._running[share] < self._per_share):
                self._running[share] += 1
                turn.set_result(None)
            else:
                kept.append((share, turn))
        self._waiting = kept
