"""The writer of a turn's log; one per turn.

`write` is called for every token: it merges and returns. Offsets are given when records leave the buffer; the flusher
sends them to the hot log, the committer to the database at part and step boundaries, at least once a second, and
together with the record of a step. A writer holds what not both tiers have, so either may fail for a while: without
Redis the database takes over, and what Redis missed since the last segment is written again.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from django.db import Error as DatabaseError

from chat.core.wire.chunks import Chunk, is_boundary, is_shown
from chat.streams.conf import stream_settings
from chat.streams.errors import Fenced, LogUnavailable
from chat.streams.logs import database_log
from chat.streams.logs.log import get_log
from chat.streams.logs.port import StreamLog
from chat.streams.records import Append, AppendResult, Opened, StreamOutcome
from chat.streams.writing.backlog import Backlog
from chat.streams.writing.committer import Committer, RecordStep
from chat.streams.writing.committer import Fenced as Fence
from chat.streams.writing.flusher import flusher_for
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError

logger = logging.getLogger(__name__)

T = TypeVar("T")

BOUNDARY_SECONDS = 0.05  # after a boundary: the step's own commit usually comes first
PATIENCE_SECONDS = 5.0
OPEN_DELAYS_SECONDS = (0.05, 0.2, 0.8)
MISSES_UNTIL_DOWN = 3
MAX_WAITING = 2_000  # records that no tier has
MAX_HELD_SIZE = 8_000_000  # characters
CLOSE_SECONDS = 3.0
TRIM_STEP = 500
HOT_RECORDS = 10_000  # of a running turn that stay in Redis for quick replays


class StreamWriter:
    """Write one stream from the offset after its last readable record. An async context manager, for one loop.

    `ctx_fenced` opens the fenced transaction of the lease (`FiberContext.fenced`). `is_new`: the database can have
    nothing of the stream yet. `on_progress` is called with 1 for each chunk that shows content. Errors of `async with`:
    `Fenced` when a higher fence has the stream.
    """

    def __init__(
        self,
        stream: str,
        *,
        fence: int,
        ctx_fenced: Fence,
        is_new: bool = False,
        on_progress: Callable[[int], None] | None = None,
        log: StreamLog | None = None,
    ) -> None:
        self.stream = stream
        self.shown = False  # whether content was written since the step began
        self.start_offset = 0
        self.step_offset = 0
        self.epoch = ""
        self._former: tuple[int, tuple[str, ...]] = (0, ())  # up to where the database has them, and the others
        self._fence = fence
        self._is_new = is_new
        self._on_progress = on_progress
        self._log = log or get_log()
        self._flusher = flusher_for(self._log)
        self._loop = asyncio.get_running_loop()
        self._backlog = Backlog()
        self._committer = Committer(self, self._backlog, ctx_fenced)
        self._failure: ThinkError | None = None
        self._is_scheduled = False
        self._is_rewriting = False
        self._misses = 0
        self._written_at = 0.0
        self._trimmed = 0
        self._changed = asyncio.Event()
        self._pause_seconds = 3 * stream_settings.window_seconds
        self._hot_records = HOT_RECORDS
        self._cold_seconds = stream_settings.cold_seconds

    async def __aenter__(self) -> Self:
        floor = 0 if self._is_new else await db(database_log.next_cold_offset, self.stream)
        opened = await self._open(floor)
        self.epoch = opened.epoch
        self._backlog.begin(floor, opened.tail)
        self._former = (floor, opened.tail)
        self.start_offset = self.step_offset = opened.next_offset
        if opened.tail:
            self._committer.arm(self._cold_seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await _to_the_end(self._close())
        if error is None:
            self._raise_failure()

    async def former_records(self) -> list[str]:
        """The texts of all records of earlier writers, even if the hot log was lost since this one took the stream."""
        floor, tail = self._former
        stored = await db(database_log.cold_records, self.stream, 0, floor) if floor else []
        return [*(record.text for record in stored), *tail]

    @property
    def next_offset(self) -> int:
        """The next chunk's offset, unless it merges into the previous one."""
        return self._backlog.next_offset

    @property
    def is_hot_down(self) -> bool:
        """Whether the hot log has not answered for a while; the database keeps the records meanwhile."""
        return self._misses >= MISSES_UNTIL_DOWN

    @property
    def is_full(self) -> bool:
        """Whether `drain` would wait."""
        return self._backlog.waiting > MAX_WAITING or self._backlog.held_size > MAX_HELD_SIZE

    def write(self, chunk: Chunk) -> None:
        """Log a chunk. Cheap, never waits; call `drain` between tokens. Errors: `Fenced`, or why the log stopped."""
        if self._failure is not None:
            raise self._failure
        self._backlog.add(chunk)
        now = self._loop.time()
        is_urgent = now - self._written_at > self._pause_seconds
        if is_shown(chunk):
            is_urgent = is_urgent or not self.shown  # the first word of a step waits for no window
            self.shown = True
            if self._on_progress is not None:
                self._on_progress(1)
        if is_urgent or not self._is_scheduled:
            self._is_scheduled = True
            self._flusher.schedule(self, is_urgent=is_urgent)
        self._written_at = now
        if is_boundary(chunk):
            self._committer.arm(BOUNDARY_SECONDS)

    def begin_step(self) -> None:
        """A model step begins: reset `shown` and the offsets of its record."""
        self.shown = False
        self.step_offset = self.next_offset

    async def drain(self) -> None:
        """Wait while too much is neither in the hot log nor in the database. Usually returns at once."""
        self._raise_failure()
        while self.is_full:
            self._flusher.schedule(self, is_urgent=True)
            self._committer.arm(0.0)
            await self._changed.wait()
            self._raise_failure()

    async def flush(self) -> None:
        """Return when everything written is in the hot log, or in the database where that came first in an outage.

        Errors: `Fenced`; `LogUnavailable` after some patience, or at the next miss while the hot log is down.
        """
        self._raise_failure()
        target, misses = self.next_offset, self._misses
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while self._backlog.hot_next < target or self._is_rewriting:
                    if self.is_hot_down and self._misses > misses:
                        raise LogUnavailable(stream=self.stream)
                    self._flusher.schedule(self, is_urgent=True)
                    await self._changed.wait()
                    self._raise_failure()
        except TimeoutError as error:
            raise LogUnavailable(stream=self.stream) from error

    async def flush_cold(self, record: RecordStep | None = None, *, within: Fence | None = None) -> None:
        """Return when everything written is in the database, and in the hot log unless that is down.

        `record` is called inside the same fenced transaction with the offsets of the step that ends here, to write the
        step's journal record; the next step begins after it. `within` opens that transaction in the place of
        `ctx_fenced`. Errors: what `ctx_fenced` and `record` raise; `Fenced`;
        `django.db.Error`.
        """
        self._raise_failure()
        try:
            if not self.is_hot_down:
                await self.flush()
        except LogUnavailable:
            logger.warning("hot log given up for the moment", extra={"stream": self.stream})
        await _to_the_end(self._committer.commit(record, self.step_offset, within))
        if record is not None:
            self.begin_step()

    # What the flusher and the committer call.

    def take(self) -> Append | None:
        """Assign offsets to buffered chunks and return the records the hot log lacks."""
        self._is_scheduled = False
        if self._failure is not None:
            return None
        backlog = self._backlog
        backlog.assign()
        if backlog.unstored_count:
            self._committer.arm(self._cold_seconds)
        if self._is_rewriting:
            backlog.forget_sent()
        first, texts = backlog.unsent()
        if not texts:
            self._is_rewriting = False
            self.notify()
            return None
        below = min(backlog.cold_next, backlog.hot_next - self._hot_records)
        return Append(
            stream=self.stream,
            fence=self._fence,
            epoch=self.epoch,
            first=first,
            texts=texts,
            is_rewrite=self._is_rewriting,
            trim_below=below if below >= self._trimmed + TRIM_STEP else 0,
        )

    def settle(self, append: Append, answer: AppendResult) -> bool:
        """Take note of what became of an append."""
        self._misses = 0
        if answer.outcome is StreamOutcome.BEHIND:
            self._is_rewriting = True
            return True
        if answer.outcome is StreamOutcome.FENCED:
            self.fail(Fenced(stream=self.stream))
            return False
        self.epoch = answer.epoch
        self._is_rewriting = False
        self._trimmed = max(self._trimmed, append.trim_below)
        self._backlog.sent(append.first + len(append.texts))
        self.notify()
        return False

    def missed(self) -> bool:
        """Take note that it is unknown what arrived: all that is held is written again."""
        self._is_rewriting = True
        self._misses += 1
        self.notify()
        return self._failure is None

    def fail(self, error: ThinkError) -> None:
        """Refuse everything from now on with this error."""
        if self._failure is None:
            self._failure = error
        self._committer.disarm()
        self.notify()

    def notify(self) -> None:
        """Wake who waits for progress."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _open(self, floor: int) -> Opened:
        for delay_seconds in OPEN_DELAYS_SECONDS:
            try:
                return await self._log.open(self.stream, fence=self._fence, floor=floor)
            except LogUnavailable:
                await asyncio.sleep(delay_seconds)
        return await self._log.open(self.stream, fence=self._fence, floor=floor)

    async def _close(self) -> None:
        try:
            if self._failure is None:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self.flush_cold()
        except (ThinkError, DatabaseError, TimeoutError) as error:
            logger.warning("stream closes with records unsaved", extra={"stream": self.stream}, exc_info=error)
            self.fail(error if isinstance(error, ThinkError) else LogUnavailable(stream=self.stream))
        finally:
            self._flusher.forget(self)
            self._committer.disarm()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await something that must not be cut in the middle; a cancel is raised after it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        done, _ = await asyncio.wait({task}, timeout=CLOSE_SECONDS)
        for ended in done:
            if not ended.cancelled():
                ended.exception()  # retrieved; the caller gets the cancellation
        raise
