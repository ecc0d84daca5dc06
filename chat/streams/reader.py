"""Read a stream from an offset: both tiers merged, without gaps, then live.

A follower checks every live batch by offset and epoch: what it has is dropped, a hole or a new epoch sends it back to
the log. Nothing rests on a message arriving: after silence it asks whether the turn is over and reads again.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass

from chat.streams.conf import stream_settings
from chat.streams.errors import LogUnavailable
from chat.streams.logs import database_log
from chat.streams.logs.log import get_log
from chat.streams.logs.port import StreamLog
from chat.streams.records import CaughtUp, End, HotSlice, Published, Record, Reset
from thinkproject.kernel.aio import db

logger = logging.getLogger(__name__)

PAGE_RECORDS = 2_000
ARCHIVE_RECORDS = 100_000
QUEUE_BATCHES = 256  # live ones that wait for a slow reader before it has to re-read
_BEYOND = 2**53 - 1  # no stream has so many records

Event = list[Record] | CaughtUp | Reset | End


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """Records from the offset on, and the state of both tiers."""

    records: list[Record]
    epoch: str | None  # as the hot log knows it, else the database
    is_hot: bool  # whether the hot log knows the stream
    end: int  # offset after the last known record
    is_closed: bool
    is_unborn: bool = False  # a new turn that the hot log does not know: it has not begun


async def read(stream: str, offset: int = 0, *, log: StreamLog | None = None) -> list[Record]:
    """Return every record from the offset on, as they stand now, without gaps."""
    log = log or get_log()
    found: list[Record] = []
    while True:
        page = await _page(log, stream, offset + len(found), is_thorough=True)
        found += page.records
        if len(page.records) < PAGE_RECORDS:
            return found


async def find_end(stream: str) -> tuple[int, str | None]:
    """Return the offset after the last record, as it stands now, and the epoch; 0 and `None` of an unknown stream."""
    page = await _page(get_log(), stream, _BEYOND, is_thorough=True)
    return page.end, page.epoch


def follow(
    stream: str,
    offset: int = 0,
    *,
    is_over: Callable[[], Awaitable[bool]],
    epoch: str | None = None,
    log: StreamLog | None = None,
    queue_batches: int | None = None,
) -> AsyncGenerator[Event, None]:
    """Yield lists of records from an offset: stored ones, `CaughtUp`, live ones, and finally `End`.

    `Reset` says that what was delivered does not hold (the offset lies beyond the end, or the stream began a new life)
    and that records from 0 follow. `is_over` returns whether the turn is final; it is called after silence, after
    `close_stream`, and when the hot log does not know the stream. `epoch` is that of an earlier `CaughtUp`.
    Close it (`contextlib.aclosing`) when you leave early.
    """
    follower = _Follower(log or get_log(), stream, offset, epoch, is_over)
    return _follow(follower, queue_batches or QUEUE_BATCHES)


def follow_new(
    stream: str, *, is_over: Callable[[], Awaitable[bool]], log: StreamLog | None = None
) -> AsyncGenerator[Event, None]:
    """The same from 0, of a turn that was accepted just now: what the hot log does not know has not begun.

    So neither the database nor `is_over` is asked before there was silence, and what comes live is read nowhere else.
    """
    return _follow(_Follower(log or get_log(), stream, 0, None, is_over, is_new=True), QUEUE_BATCHES)


async def _follow(follower: "_Follower", max_batches: int) -> AsyncGenerator[Event, None]:
    idle_seconds = stream_settings.idle_seconds
    async with follower.log.subscribe(follower.stream, max_batches) as subscription:
        must_read, must_ask = True, False
        while True:
            if must_read or must_ask:
                subscription.clear()
                async for event in follower.replay(must_ask=must_ask):
                    yield event
                    if isinstance(event, End):
                        return
            received = await subscription.wait(idle_seconds)
            must_read = received.must_reread
            must_ask = received.is_closed or received.is_silence
            if received.batches:
                records, is_broken = follower.accept(received.batches)
                must_read = must_read or is_broken
                if records:
                    yield records


async def close_stream(stream: str, *, is_stored: bool = False, log: StreamLog | None = None) -> None:
    """Notify the followers that the turn is final; they re-read its row. Call after the commit that ended it.

    Records that a dead writer left in the hot log alone are archived first, unless the caller knows that all are stored
    (`is_stored`: the last commit was its own). Safe to call twice. Without Redis the followers find out by themselves,
    at their idle time.
    """
    log = log or get_log()
    try:
        if not is_stored:
            floor = await db(database_log.next_cold_offset, stream)
            hot = await log.read(stream, floor, ARCHIVE_RECORDS)
            await db(database_log.archive, stream, _contiguous(floor, hot.records), hot.epoch or "")
        await log.close(stream)
    except LogUnavailable:
        logger.warning("stream closes without its notification", extra={"stream": stream})


class _Follower:
    """Position of one reader in one stream."""

    def __init__(
        self,
        log: StreamLog,
        stream: str,
        offset: int,
        epoch: str | None,
        is_over: Callable[[], Awaitable[bool]],
        *,
        is_new: bool = False,
    ) -> None:
        self.log = log
        self._is_new = is_new
        self.stream = stream
        self.position = offset
        self.epoch = epoch
        self._is_over = is_over
        self._is_caught_up = False

    async def replay(self, *, must_ask: bool) -> AsyncGenerator[Event, None]:
        """Yield stored records after the position; `End` if the turn is over."""
        is_over = must_ask and await self._is_over()
        while True:
            is_new = self._is_new and self.position == 0 and not must_ask
            page = await _page(self.log, self.stream, self.position, is_thorough=must_ask, is_new=is_new)
            if page.is_unborn:
                return
            if self._is_void(page, is_over):
                yield self._reset(page)
                continue
            self.epoch = page.epoch or self.epoch
            if page.records:
                self.position += len(page.records)
                yield page.records
            if len(page.records) >= PAGE_RECORDS:
                continue
            if is_over:
                yield End(self.position)
                return
            if not must_ask and (page.is_closed or not page.is_hot):
                # Asked before the last look: what the turn wrote before it was over is then in that look.
                must_ask, is_over = True, await self._is_over()
                if is_over:
                    continue
            break
        if not self._is_caught_up:
            self._is_caught_up = True
            yield CaughtUp(self.position, self.epoch)

    def accept(self, batches: Iterable[Published]) -> tuple[list[Record], bool]:
        """Return the new records of live batches, and whether the log has to be read again."""
        fresh: list[Record] = []
        for epoch, records in batches:
            if self._is_new and self.epoch is None and self.position == 0:
                self.epoch = epoch  # its first life: nothing was delivered that a later one could contradict
            if epoch != self.epoch or records[0].offset > self.position:
                return fresh, True
            known = self.position - records[0].offset
            if known < len(records):
                fresh += records[known:] if known else records
                self.position = records[-1].offset + 1
        return fresh, False

    def _is_void(self, page: _Page, is_over: bool) -> bool:
        if self.position == 0:
            return False
        if page.epoch is not None and self.epoch is not None and page.epoch != self.epoch:
            return True
        # Beyond the end: with a writer that lives and an epoch that holds, the records are about to be written again.
        return not page.records and self.position > page.end and (is_over or (page.is_hot and self.epoch is None))

    def _reset(self, page: _Page) -> Reset:
        self.position = 0
        self.epoch = page.epoch
        self._is_caught_up = False
        return Reset(page.epoch)


async def _page(log: StreamLog, stream: str, offset: int, *, is_thorough: bool, is_new: bool = False) -> _Page:
    """Read the hot log first, then, where that leaves a hole, the database.

    The order matters: what the hot log had dropped when it was read is in the database by then. A thorough look does
    not believe the hot log's end: after an outage the database may be ahead of it. `is_new`: as `follow_new`.
    """
    try:
        hot = await log.read(stream, offset, PAGE_RECORDS)
    except LogUnavailable:
        hot, is_new = HotSlice(), False
    if is_new and hot.epoch is None:
        return _Page(records=[], epoch=None, is_hot=False, end=0, is_closed=False, is_unborn=True)
    records = _contiguous(offset, hot.records)
    following, end, epoch = offset + len(records), hot.next_offset or 0, hot.epoch
    if len(records) < PAGE_RECORDS and (hot.next_offset is None or is_thorough or following != end):
        stored = await db(database_log.cold_page, stream, following, PAGE_RECORDS - len(records))
        records += _contiguous(following, [*stored.records, *hot.records])
        end = end if records else max(end, stored.end)
        epoch = epoch or stored.epoch
    return _Page(
        records=records[:PAGE_RECORDS],
        epoch=epoch,
        is_hot=hot.epoch is not None,
        end=end,
        is_closed=hot.is_closed,
    )


def _contiguous(offset: int, records: Iterable[Record]) -> list[Record]:
    """Return the records from the offset on up to the first hole; duplicates are dropped."""
    found: list[Record] = []
    for record in records:
        if record.offset == offset:
            found.append(record)
            offset += 1
        elif record.offset > offset:
            break
    return found
