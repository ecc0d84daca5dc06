"""Law of the log: whatever is appended, flushed, trimmed, lost, taken over and read, readers end with the exact stream.

A stateful test over the real writer, reader and database, with the in-process hot log (which passes Redis' contract
suite). The model is a list: what the stream must be. A takeover may cut its end only where a loss of the hot log took
records that the database never had.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from chat.core.wire import chunks
from chat.streams import reader
from chat.streams.errors import LogUnavailable
from chat.streams.logs.memory_log import MemoryLog
from chat.streams.logs.subscription import Subscription
from chat.streams.reader import read
from chat.streams.writing import writer
from chat.streams.writing.writer import StreamWriter
from tests.budget import examples
from tests.db.chat.streams.support import Collector, FlakyLog, eventually, make_writer, never
from tests.stream_consistency import inconsistencies
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import load

T = TypeVar("T")


def _has(client: Any, records: list[Any]) -> bool:
    return bool(client.records == records)


class MuteLog(MemoryLog):
    """Does not announce so many of the next batches."""

    muted = 0

    def _deliver(self, stream: str, news: Callable[[Subscription], None]) -> None:
        if self.muted:
            self.muted -= 1
        else:
            super()._deliver(stream, news)


class LogMachine(RuleBasedStateMachine):
    """One stream under everything that may happen to it."""

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.stream = new_id("trn")
        self.memory = MuteLog()
        self.log = FlakyLog(self.memory)
        self.truth: list[str] = []
        self.safe = 0  # so many records no takeover may lose
        self.stored = 0
        self.lost_at = -1  # how long the stream was when the hot log was lost and no one had written since
        self.fence = 1
        self.serial = 0
        self.clients: list[Collector] = []
        self.writer = self.run(self._opened())

    async def _opened(self) -> StreamWriter:
        return await make_writer(self.stream, self.log, fence=self.fence).__aenter__()

    def run(self, work: Awaitable[T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(10):
                return await work

        return self.loop.run_until_complete(bounded())

    @rule(count=st.integers(1, 30))
    def write(self, count: int) -> None:
        async def go() -> None:
            for _ in range(count):
                self.serial += 1
                self.writer.write(chunks.text_delta(f"t{self.serial}", str(self.serial)))
                self.truth.append(str(self.serial))

        self.run(go())

    @precondition(lambda self: not self.log.is_down)
    @rule()
    def flush(self) -> None:
        try:
            self.run(self.writer.flush())
        except LogUnavailable:
            assert self.writer.is_hot_down  # an answer was lost before the log counted as back
        else:
            if len(self.truth) > self.lost_at:  # a writer that writes nothing does not notice a loss
                self.safe = len(self.truth)

    @precondition(lambda self: not self.log.is_down)
    @rule(count=st.integers(1, 20), muted=st.integers(0, 3))
    def burst(self, count: int, muted: int) -> None:
        """Batch after batch, of which some are not announced."""
        for number in range(4):
            if number == 1:
                self.memory.muted = muted
            self.write(count)
            self.flush()
            self.pause(2)
        self.read_from_somewhere(0.0)

    @rule()
    def flush_cold(self) -> None:
        ranges: list[range] = []
        self.run(self.writer.flush_cold(ranges.append))
        assert ranges[0].stop == len(self.truth)
        self.safe = self.stored = len(self.truth)

    @rule(milliseconds=st.integers(1, 60))
    def pause(self, milliseconds: int) -> None:
        self.run(asyncio.sleep(milliseconds / 1000))  # how the steps lie in time is part of the example

    @rule()
    def lose_everything_hot(self) -> None:
        self.memory.wipe()
        self.safe = self.stored
        self.lost_at = len(self.truth)

    @rule(count=st.integers(1, 3))
    def lose_announcements(self, count: int) -> None:
        self.memory.muted = count

    @rule()
    def lose_an_answer(self) -> None:
        self.log.lost_answers = 1

    @rule(is_down=st.booleans())
    def switch_the_hot_log(self, is_down: bool) -> None:
        self.log.is_down = is_down

    @precondition(lambda self: not self.log.is_down)
    @rule()
    def take_over(self) -> None:
        """The worker died; another goes on after the last readable record."""
        self.fence += 1
        self.run(self._die())
        self.writer = self.run(self._opened())
        assert self.safe <= self.writer.next_offset <= len(self.truth)
        del self.truth[self.writer.next_offset :]
        self.lost_at = -1

    async def _die(self) -> None:
        """Write no more. A commit under way comes first or is refused: a claim and a fenced write lock the same row."""
        self.writer.fail(RuntimeError("this worker is dead"))  # type: ignore[arg-type]  # no one looks
        async with self.writer._committer._lock:
            pass

    @precondition(lambda self: not self.log.is_down)
    @rule(count=st.integers(1, 10))
    def die_together(self, count: int) -> None:
        """Readers saw words that neither tier holds any more; their offsets go to other words."""
        self.write(count)
        self.flush()
        self.pause(5)
        self.lose_everything_hot()
        self.take_over()
        self.write(count)
        self.write(1)

    @rule(queue=st.sampled_from([1, 50]))
    def watch(self, queue: int) -> None:
        if len(self.clients) < 4:

            async def go() -> None:
                self.clients.append(Collector(self.stream, self.log, never, queue_batches=queue))

            self.run(go())

    @rule(share=st.floats(0, 1))
    def read_from_somewhere(self, share: float) -> None:
        offset = int(share * len(self.truth))
        found = self.run(read(self.stream, offset, log=self.log))
        assert [record.offset for record in found] == list(range(offset, offset + len(found)))
        assert offset + len(found) >= (self.stored if self.log.is_down else self.safe)
        assert [load(record.text)["delta"] for record in found] == self.truth[offset : offset + len(found)]

    def teardown(self) -> None:
        if not hasattr(self, "writer"):
            return
        try:
            self.run(self._finish())
        finally:
            self.run(self._leave())
            self.loop.close()

    async def _leave(self) -> None:
        for client in self.clients:
            await client.stop()

    async def _finish(self) -> None:
        self.log.is_down = False
        await self.writer.__aexit__(None, None, None)
        found = await read(self.stream, log=self.memory)
        assert [load(record.text)["delta"] for record in found] == self.truth
        assert await inconsistencies(self.stream, log=self.memory) == []
        for client in self.clients:
            await eventually(partial(_has, client, found), seconds=3)


@pytest.mark.django_db(transaction=True)
def test_readers_end_with_the_exact_stream(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.THINK_STREAM_WINDOW_SECONDS = 0.002
    settings.THINK_STREAM_COLD_SECONDS = 0.3
    settings.THINK_STREAM_IDLE_SECONDS = 0.1
    monkeypatch.setattr(writer, "HOT_RECORDS", 10)
    monkeypatch.setattr(writer, "TRIM_STEP", 5)
    monkeypatch.setattr(reader, "PAGE_RECORDS", 17)
    run_state_machine_as_test(LogMachine, settings=PROFILE)


PROFILE = settings(
    max_examples=examples(40),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),  # shrinking what depends on time takes minutes and misleads
)
