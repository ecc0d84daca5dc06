"""The database side of a writer: commits its records within a second.

A commit on demand is one fenced transaction of the lease, with the journal record of a step where one ends. Commits by
time of all writers of a loop share transactions, each writer in a fenced savepoint of its own: a hundred answers at
once cost a few transactions a second. Should the answer to a commit be lost, the next one asks the database first what
it has.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakKeyDictionary

from django.db import Error as DatabaseError
from django.db import transaction

from chat.streams.conf import stream_settings
from chat.streams.logs import database_log
from chat.streams.records import Record
from chat.streams.writing.backlog import Backlog
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError

logger = logging.getLogger(__name__)

RecordStep = Callable[[range], None]
Fenced = Callable[[], AbstractContextManager[None]]

GROUP_SIZE = 20
"""Writers whose records go in one transaction: other writers of the database wait for it."""

PAUSE_SECONDS = 0.005
"""Between two rounds, so that a writer that cannot commit does not spin."""


class Owner(Protocol):
    """The writer's interface for the committer."""

    stream: str
    epoch: str

    @property
    def is_hot_down(self) -> bool:
        """Whether the hot log has been given up for the moment."""

    def fail(self, error: ThinkError) -> None:
        """The stream is lost."""

    def notify(self) -> None:
        """Wake the waiters: something has changed."""


class Committer:
    """Commits of one writer, one at a time, by itself or on demand."""

    def __init__(self, owner: Owner, backlog: Backlog, ctx_fenced: Fenced) -> None:
        self._owner = owner
        self._backlog = backlog
        self._ctx_fenced = ctx_fenced
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()
        self.is_unsure = False  # whether a commit may have succeeded without a response
        self._group = _group_of(self._loop)

    @property
    def stream(self) -> str:
        """Name of the stream."""
        return self._owner.stream

    def arm(self, seconds: float) -> None:
        """Commit within this time, unless a commit comes earlier anyway."""
        self._group.arm(self, self._loop.time() + seconds)

    def disarm(self) -> None:
        """Commit on demand alone."""
        self._group.disarm(self)

    async def commit(
        self, record: RecordStep | None = None, step_offset: int = 0, within: Fenced | None = None
    ) -> None:
        """Commit everything that was written. `record` runs in the same transaction, with the offsets of its step.

        `within` opens another fenced transaction than the writer's.
        """
        async with self._lock:
            work = self._next_work()
            if not work.records and record is None:
                return
            self.is_unsure = True
            await db(work.write, record, range(step_offset, work.stop), within)
            self._settle(work)

    async def take(self) -> "_Work | None":
        """Give the group the pending records; `None` during a commit that includes them. For the group.

        Who takes work gives it back to `end`.
        """
        if self._lock.locked():
            self.disarm()
            return None
        await self._lock.acquire()  # returns at once
        work = self._next_work()
        self.is_unsure = self.is_unsure or bool(work.records)
        return work

    def end(self, work: "_Work | None", *, is_written: bool) -> None:
        """Record the outcome of a commit, and schedule the next for missing records. For the group."""
        if work is not None:
            if work.lost is not None:
                self._owner.fail(work.lost)
            elif is_written and work.records:
                self._settle(work)
            self._lock.release()
        if self._backlog.unstored_count and (work is None or work.lost is None):
            self.arm(stream_settings.cold_seconds)

    def _next_work(self) -> "_Work":
        self.disarm()
        self._backlog.assign()
        return _Work(
            stream=self._owner.stream,
            epoch=self._owner.epoch,
            ctx_fenced=self._ctx_fenced,
            records=self._backlog.unstored(),
            stop=self._backlog.assigned,
            is_unsure=self.is_unsure,
        )

    def _settle(self, work: "_Work") -> None:
        self.is_unsure = False
        self._backlog.stored(work.stop, is_hot_down=self._owner.is_hot_down)
        self._owner.notify()


@dataclass(slots=True, kw_only=True)
class _Work:
    """Records of one writer for one transaction. `lost`: why it was refused."""

    stream: str
    epoch: str
    ctx_fenced: Fenced
    records: list[Record]
    stop: int  # offset after the last record
    is_unsure: bool
    lost: ThinkError | None = None

    def write(self, record: RecordStep | None = None, offsets: range = range(0), within: Fenced | None = None) -> None:
        """Write, and the record of a step with it. Sync. Errors: `ThinkError` when the lease is lost."""
        with (within or self.ctx_fenced)():
            if self.is_unsure:
                database_log.write_missing(self.stream, self.records, self.epoch)
            else:
                database_log.write_segments(self.stream, self.records, self.epoch)
            if record is not None:
                record(offsets)


class _Group:
    """Timed commits of a loop's writers. A commit takes along those that are due soon."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._deadlines: dict[Committer, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def arm(self, committer: Committer, due: float) -> None:
        """Have this one's records written by then. Called for every batch of chunks, so it does next to nothing."""
        known = self._deadlines.get(committer)
        if known is not None and known <= due:
            return
        self._deadlines[committer] = due
        if self._task is None and (self._timer is None or due < self._timer.when()):
            self._wake_at(due)

    def disarm(self, committer: Committer) -> None:
        """Leave this one out."""
        self._deadlines.pop(committer, None)

    def _wake_at(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._start)

    def _start(self) -> None:
        self._timer = None
        self._task = self._loop.create_task(self._run(), name="think-stream-commit")
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and task.exception() is not None:
            logger.error("stream committer failed", exc_info=task.exception())
        if self._deadlines and not task.cancelled():
            self._wake_at(max(min(self._deadlines.values()), self._loop.time() + PAUSE_SECONDS))

    async def _run(self) -> None:
        now = self._loop.time()
        if min(self._deadlines.values(), default=now + 1) > now + PAUSE_SECONDS:
            return  # who armed the timer has committed by itself
        soon = now + stream_settings.cold_seconds / 2
        # In the order in which others lock several rows: ids are ordered by time.
        due = sorted((one for one, at in self._deadlines.items() if at <= soon), key=lambda one: one.stream)
        sure = [one for one in due if not one.is_unsure]
        for begin in range(0, len(sure), GROUP_SIZE):
            await self._commit(sure[begin : begin + GROUP_SIZE])
        for one in due:
            if one.is_unsure and one in self._deadlines:
                await self._commit([one])  # whose commit failed must not take others with it again

    async def _commit(self, members: Sequence[Committer]) -> None:
        taken = [(member, await member.take()) for member in members]
        works = [work for _, work in taken if work is not None and work.records]
        is_written = False
        try:
            if works:
                await db(_write_all, works)
            is_written = True
        except DatabaseError as error:
            logger.warning("cold log does not answer", extra={"streams": len(works)}, exc_info=error)
        finally:
            for member, work in taken:
                member.end(work, is_written=is_written)


def _write_all(works: Sequence[_Work]) -> None:
    with transaction.atomic():
        for work in works:
            try:
                work.write()
            except ThinkError as error:  # this lease is lost; the others' are not
                work.lost = error


_groups: WeakKeyDictionary[asyncio.AbstractEventLoop, _Group] = WeakKeyDictionary()


def _group_of(loop: asyncio.AbstractEventLoop) -> _Group:
    group = _groups.get(loop)
    if group is None:
        group = _groups[loop] = _Group(loop)
    return group
