"""What the tests of the log share: writers, readers that collect, chunks."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from typing import Any

from django.db import transaction

from chat.core.wire import chunks
from chat.core.wire.chunks import Chunk
from chat.streams.errors import LogUnavailable
from chat.streams.logs.memory_log import MemoryLog
from chat.streams.logs.port import StreamLog
from chat.streams.logs.redis_log import RedisLog
from chat.streams.logs.subscription import Subscription
from chat.streams.reader import Event, follow
from chat.streams.records import Append, AppendResult, End, HotSlice, Opened, Record, Reset
from chat.streams.writing.writer import StreamWriter


@contextmanager
def unfenced() -> Iterator[None]:
    """Stand for `FiberContext.fenced` where no lease is at stake."""
    with transaction.atomic():
        yield


def make_writer(stream: str, log: StreamLog, *, fence: int = 1, **options: Any) -> StreamWriter:
    return StreamWriter(stream, **{"fence": fence, "ctx_fenced": unfenced, "log": log, **options})


def part(number: int) -> Chunk:
    """A chunk that never merges with its neighbour."""
    return chunks.text_delta(f"t{number}", f"word {number} ")


def text_of(number: int) -> str:
    return f'{{"type":"text-delta","id":"t{number}","delta":"word {number} "}}'


def texts(count: int, start: int = 0) -> list[str]:
    return [text_of(number) for number in range(start, start + count)]


def append_of(stream: str, epoch: str, first: int, count: int, **options: Any) -> Append:
    wanted: dict[str, Any] = {"fence": 1, "texts": texts(count, first), **options}
    return Append(stream=stream, epoch=epoch, first=first, **wanted)


def records(count: int, start: int = 0) -> list[Record]:
    return [Record(number, text_of(number)) for number in range(start, start + count)]


async def never() -> bool:
    return False


async def always() -> bool:
    return True


async def eventually(is_true: Callable[[], bool | Awaitable[bool]], seconds: float = 5.0) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(seconds):
        while True:
            result = is_true()
            if (await result) if isinstance(result, Awaitable) else result:
                return
            await asyncio.sleep(0.005)


class Collector:
    """A reader that keeps what it gets, as a client would: a reset empties it."""

    def __init__(
        self,
        stream: str,
        log: StreamLog,
        is_over: Callable[[], Awaitable[bool]] = never,
        *,
        watch: Callable[..., AsyncGenerator[Event, None]] = follow,
        **options: Any,
    ):
        self.records: list[Record] = []
        self.events: list[Event] = []
        self.pause_seconds = 0.0
        self._events = watch(stream, is_over=is_over, log=log, **options)
        self.task = asyncio.create_task(self._collect())

    async def _collect(self) -> None:
        async with aclosing(self._events) as events:
            async for event in events:
                self.events.append(event)
                if isinstance(event, Reset):
                    self.records.clear()
                elif isinstance(event, list):
                    self.records += event
                if self.pause_seconds:
                    await asyncio.sleep(self.pause_seconds)  # a client that is slow

    @property
    def offsets(self) -> list[int]:
        return [record.offset for record in self.records]

    @property
    def has_ended(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], End)

    async def until(self, count: int, seconds: float = 10.0) -> None:
        """Wait until so many records are there."""
        await eventually(lambda: len(self.records) >= count or self.task.done(), seconds)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def __aenter__(self) -> "Collector":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


class FlakyLog:
    """A hot log between a writer and the real one, that fails on demand: a double that misbehaves."""

    def __init__(self, log: StreamLog) -> None:
        self._log = log
        self.is_down = False
        self.lost_answers = 0  # so many appends arrive without the writer hearing of it
        self.appends = 0
        self.reads = 0

    async def open(self, stream: str, *, fence: int, floor: int) -> Opened:
        self._check()
        return await self._log.open(stream, fence=fence, floor=floor)

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        self.appends += 1
        self._check()
        answers = await self._log.append(appends)
        if self.lost_answers:
            self.lost_answers -= 1
            raise LogUnavailable
        return answers

    async def read(self, stream: str, offset: int, limit: int) -> HotSlice:
        self.reads += 1
        self._check()
        return await self._log.read(stream, offset, limit)

    async def close(self, stream: str) -> None:
        self._check()
        await self._log.close(stream)

    def subscribe(self, stream: str, max_batches: int) -> AbstractAsyncContextManager[Subscription]:
        return self._log.subscribe(stream, max_batches)

    def _check(self) -> None:
        if self.is_down:
            raise LogUnavailable


async def wipe(log: StreamLog) -> None:
    """Lose everything, as a server that was restarted empty."""
    if isinstance(log, MemoryLog):
        log.wipe()
    else:
        assert isinstance(log, RedisLog)
        await log._writing.exchange([("FLUSHALL",)])
