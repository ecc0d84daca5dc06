"""The hot log in the memory of one process, for `chat.testing` and tests. The same contract suite as Redis.

Loops of several threads may share one: a lock guards the state, followers are woken on their own loops.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from chat.streams.errors import Fenced
from chat.streams.logs.redis_log import new_epoch
from chat.streams.logs.subscription import Subscription
from chat.streams.records import Append, AppendResult, HotSlice, Opened, Published, Record, StreamOutcome


@dataclass(slots=True, kw_only=True)
class _State:
    fence: int
    epoch: str
    base: int  # offset of texts[0]
    texts: list[str] = field(default_factory=list)
    is_closed: bool = False

    @property
    def next_offset(self) -> int:
        return self.base + len(self.texts)


class MemoryLog:
    """`StreamLog` without Redis, in the memory of one process; nothing survives its end."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._states: dict[str, _State] = {}
        self._followers: dict[str, dict[Subscription, asyncio.AbstractEventLoop]] = {}

    async def open(self, stream: str, *, fence: int, floor: int) -> Opened:
        """Take the stream: from here on lower fences are refused."""
        with self._lock:
            state = self._states.get(stream)
            if state is not None and state.fence > fence:
                raise Fenced(stream=stream)
            if state is None or (state.next_offset > floor and state.base > floor):
                state = self._states[stream] = _State(fence=fence, epoch=new_epoch(), base=floor)
            if state.next_offset < floor:
                state.base, state.texts = floor, []
            state.fence, state.is_closed = fence, False
            tail = tuple(state.texts[floor - state.base :])
            return Opened(epoch=state.epoch, next_offset=state.next_offset, tail=tail)

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        """Append and announce."""
        with self._lock:
            return [self._append(append) for append in appends]

    async def read(self, stream: str, offset: int, limit: int) -> HotSlice:
        """Return records from the offset on."""
        with self._lock:
            state = self._states.get(stream)
            if state is None:
                return HotSlice()
            start = max(offset, state.base)
            texts = state.texts[start - state.base :][:limit]
            return HotSlice(
                epoch=state.epoch,
                next_offset=state.next_offset,
                is_closed=state.is_closed,
                records=tuple(Record(at, text) for at, text in enumerate(texts, start)),
            )

    async def close(self, stream: str) -> None:
        """Mark the stream as final and wake its followers."""
        with self._lock:
            state = self._states.get(stream)
            if state is not None:
                state.is_closed = True
            self._deliver(stream, Subscription.wake)

    @asynccontextmanager
    async def subscribe(self, stream: str, max_batches: int) -> AsyncIterator[Subscription]:
        """Subscribe to new records."""
        subscription = Subscription(max_batches)
        with self._lock:
            self._followers.setdefault(stream, {})[subscription] = asyncio.get_running_loop()
        try:
            yield subscription
        finally:
            with self._lock:
                followers = self._followers[stream]
                del followers[subscription]
                if not followers:
                    del self._followers[stream]
            subscription.stop()

    def wipe(self) -> None:
        """Lose everything, as a Redis that was restarted without persistence."""
        with self._lock:
            self._states.clear()

    def _append(self, append: Append) -> AppendResult:
        state = self._states.get(append.stream)
        known = None if state is None else state.fence
        if known is not None and known > append.fence:
            return AppendResult(StreamOutcome.FENCED, "")
        skip = 0
        if append.is_rewrite:
            if state is not None and known == append.fence and state.epoch != append.epoch:
                return AppendResult(StreamOutcome.FENCED, "")
            if state is None or known != append.fence or state.next_offset < append.first:
                epoch = append.epoch if state is None or known == append.fence else new_epoch()
                state = self._states[append.stream] = _State(fence=append.fence, epoch=epoch, base=append.first)
            skip = state.next_offset - append.first
            if skip > len(append.texts):
                return AppendResult(StreamOutcome.FENCED, "")
        elif state is None or known != append.fence or (state.epoch, state.next_offset) != (append.epoch, append.first):
            return AppendResult(StreamOutcome.BEHIND, "")
        self._store(state, append, skip)
        return AppendResult(StreamOutcome.APPENDED, state.epoch)

    def _store(self, state: _State, append: Append, skip: int) -> None:
        texts = append.texts[skip:]
        state.texts += texts
        if append.trim_below > state.base:
            del state.texts[: append.trim_below - state.base]
            state.base = append.trim_below
        if texts:
            records = [Record(offset, text) for offset, text in enumerate(texts, append.first + skip)]
            published = Published(state.epoch, records)
            self._deliver(append.stream, lambda follower: follower.push(published))

    def _deliver(self, stream: str, news: Callable[[Subscription], None]) -> None:
        for follower, loop in self._followers.get(stream, {}).items():
            with suppress(RuntimeError):  # its loop was closed
                loop.call_soon_threadsafe(news, follower)
