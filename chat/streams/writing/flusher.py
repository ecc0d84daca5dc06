"""One flusher per event loop: it takes what all writers have and sends it in one round trip.

A chunk after a pause goes at once; while chunks keep coming, rounds are a window apart and chunks travel together. A
record costs the same whatever it holds, here, in Redis and in each web process; so rounds of many streams are up to
twice as far apart, and a record holds more.
When Redis does not answer, rounds go on at a growing distance; nothing is lost, as writers hold what no tier has.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final, Protocol
from weakref import WeakKeyDictionary

from chat.streams.conf import stream_settings
from chat.streams.errors import LogUnavailable
from chat.streams.logs.port import StreamLog
from chat.streams.records import Append, AppendResult
from thinkproject.kernel.retry import RetryPolicy

logger = logging.getLogger(__name__)

BACKOFF: Final = RetryPolicy(first_seconds=0.05, max_seconds=1.0, jitter_share=0.0)
"""Without jitter: each process writes to the log in rounds of its own."""
CROWD = 100
"""Streams in a round that put the next one two windows away; fewer put it in proportion."""


class FlushSource(Protocol):
    """The writer's interface for the flusher."""

    def take(self) -> Append | None:
        """Return what to send now."""

    def settle(self, append: Append, answer: AppendResult) -> bool:
        """Take note of the answer. True when there is something to send at once."""

    def missed(self) -> bool:
        """Take note that the log did not answer. True to be asked again."""


class Flusher:
    """Rounds of appends for all writers of a loop."""

    def __init__(self, log: StreamLog) -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._dirty: dict[FlushSource, None] = {}
        self._in_flight: list[FlushSource] = []
        self._round: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_urgent = False
        self._last_at = 0.0
        self._misses = 0  # rounds in a row that failed
        self._crowding = 0.0  # of the last round that sent anything, from 0 to 1
        self.rounds = 0

    def schedule(self, source: FlushSource, *, is_urgent: bool = False) -> None:
        """Have this writer's chunks sent: at once when urgent or after a pause, else with the next round."""
        self._dirty[source] = None
        if is_urgent and not self._is_urgent:
            self._is_urgent = True
            if self._timer is not None and not self._misses:
                self._timer.cancel()
                self._timer = None
        if self._round is None and self._timer is None:
            self._plan()

    def forget(self, source: FlushSource) -> None:
        """Ask this writer no more."""
        self._dirty.pop(source, None)

    def _plan(self) -> None:
        window = 0.0 if self._is_urgent else stream_settings.window_seconds * (1 + self._crowding)
        distance = BACKOFF.delay_seconds(self._misses, jitter=0.0) if self._misses else window
        due = self._last_at + distance
        if due <= self._loop.time():
            self._start()
        else:
            self._timer = self._loop.call_at(due, self._start)

    def _start(self) -> None:
        self._timer = None
        self._is_urgent = False
        self._round = self._loop.create_task(self._run(), name="think-stream-flush")
        self._round.add_done_callback(self._finished)

    async def _run(self) -> None:
        self._last_at = self._loop.time()
        self.rounds += 1
        sources, self._dirty = self._dirty, {}
        taken = [(source, append) for source in sources if (append := source.take()) is not None]
        if not taken:
            return
        self._crowding = min(len(taken) / CROWD, 1.0)
        self._in_flight = [source for source, _ in taken]
        try:
            answers = await self._log.append([append for _, append in taken])
        except LogUnavailable:
            logger.warning("hot log does not answer", extra={"streams": len(taken)})
            self._miss()
            return
        self._in_flight = []
        self._misses = 0
        self._again(
            source for (source, append), answer in zip(taken, answers, strict=True) if source.settle(append, answer)
        )

    def _miss(self) -> None:
        self._misses += 1
        sources, self._in_flight = self._in_flight, []
        self._again(source for source in sources if source.missed())

    def _again(self, sources: Iterable[FlushSource]) -> None:
        for source in sources:
            self._dirty[source] = None

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._round = None
        if task.cancelled():  # the loop shuts down
            self._miss()
            return
        error = task.exception()
        if error is not None:
            logger.error("stream flusher failed", exc_info=error)
            self._miss()
        if self._dirty and self._timer is None:
            self._plan()


_flushers: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, Flusher]] = WeakKeyDictionary()


def flusher_for(log: StreamLog) -> Flusher:
    """Return the flusher of the running loop for this log."""
    flushers = _flushers.setdefault(asyncio.get_running_loop(), {})
    flusher = flushers.get(id(log))
    if flusher is None:
        flusher = flushers[id(log)] = Flusher(log)
    return flusher
