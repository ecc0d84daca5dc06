"""When chunks go: at once after a pause, together while they keep coming, and again after a failure."""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any

import pytest

from chat.streams.errors import LogUnavailable
from chat.streams.records import Append, AppendResult, StreamOutcome
from chat.streams.writing.flusher import Flusher

WINDOW = 0.5


class Source:
    """A writer that has one more text whenever it was marked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pending: list[str] = []
        self.settled: list[list[str]] = []
        self.missed_count = 0

    def take(self) -> Append | None:
        if not self.pending:
            return None
        return Append(stream=self.name, fence=1, epoch="e", first=0, texts=tuple(self.pending))

    def settle(self, append: Append, answer: AppendResult) -> bool:
        del self.pending[: len(append.texts)]
        self.settled.append(list(append.texts))
        return bool(self.pending)

    def missed(self) -> bool:
        self.missed_count += 1
        return True


class Log:
    """Counts round trips; each takes a moment."""

    def __init__(self) -> None:
        self.rounds: list[tuple[float, list[str]]] = []
        self.failures: list[Exception] = []
        self.seconds = 0.001

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        self.rounds.append((asyncio.get_running_loop().time(), [append.stream for append in appends]))
        await asyncio.sleep(self.seconds)  # how long a round trip takes
        if self.failures:
            raise self.failures.pop(0)
        return [AppendResult(StreamOutcome.APPENDED, "e") for _ in appends]


async def rest(flusher: Flusher) -> None:
    """Wait until no round runs and none is planned: nothing goes any more."""
    async with asyncio.timeout(10):
        while flusher._round is not None or flusher._timer is not None:  # noqa: ASYNC110 - it tells no one
            await asyncio.sleep(0.005)


@pytest.fixture
def noting_log() -> Log:
    return Log()


@pytest.fixture
async def flusher(noting_log: Log, settings: Any) -> Flusher:
    settings.THINK_STREAM_WINDOW_SECONDS = WINDOW
    return Flusher(noting_log)  # type: ignore[arg-type]  # the flusher only appends


def write(flusher: Flusher, sources: Iterable[Source], text: str = "x", *, is_urgent: bool = False) -> None:
    for source in sources:
        source.pending.append(text)
        flusher.schedule(source, is_urgent=is_urgent)


async def test_after_a_pause_a_chunk_goes_at_once(flusher: Flusher, noting_log: Log) -> None:
    source = Source("s")
    for _ in range(2):
        began = asyncio.get_running_loop().time()
        write(flusher, [source])
        await rest(flusher)
        assert noting_log.rounds[-1][0] - began < WINDOW / 2
        await asyncio.sleep(WINDOW)  # the pause
    assert source.settled == [["x"], ["x"]]


async def test_chunks_within_the_window_travel_together(flusher: Flusher, noting_log: Log) -> None:
    sources = [Source(f"s{number}") for number in range(5)]
    write(flusher, sources, "first")
    for _ in range(10):
        await asyncio.sleep(0.01)
        write(flusher, sources)
    await rest(flusher)
    assert [len(streams) for _, streams in noting_log.rounds] == [5, 5]
    assert noting_log.rounds[1][0] - noting_log.rounds[0][0] > 0.9 * WINDOW
    assert [len(texts) for texts in sources[0].settled] == [1, 10]


@pytest.mark.parametrize(("streams", "windows"), [(1, 1.0), (50, 1.5), (100, 2.0), (300, 2.0)])
async def test_rounds_of_many_streams_are_further_apart(
    flusher: Flusher, noting_log: Log, streams: int, windows: float
) -> None:
    sources = [Source(f"s{number}") for number in range(streams)]
    write(flusher, sources)
    await asyncio.sleep(0.05)
    write(flusher, sources)
    await rest(flusher)
    assert len(noting_log.rounds) == 2
    assert noting_log.rounds[1][0] - noting_log.rounds[0][0] == pytest.approx(windows * WINDOW, abs=WINDOW / 5)


async def test_a_chunk_after_a_pause_goes_at_once_among_many_streams_too(flusher: Flusher, noting_log: Log) -> None:
    sources = [Source(f"s{number}") for number in range(100)]
    write(flusher, sources)
    await asyncio.sleep(0.05)
    write(flusher, sources[:1], is_urgent=True)
    await asyncio.sleep(0.05)
    assert [len(streams) for _, streams in noting_log.rounds] == [100, 1]


async def test_an_urgent_chunk_takes_the_others_along(flusher: Flusher, noting_log: Log) -> None:
    sources = [Source("a"), Source("b")]
    write(flusher, sources)
    await asyncio.sleep(0.05)
    write(flusher, sources[:1])
    write(flusher, sources[1:], is_urgent=True)
    await asyncio.sleep(0.05)
    assert [streams for _, streams in noting_log.rounds] == [["a", "b"], ["a", "b"]]


async def test_rounds_never_overlap(flusher: Flusher, noting_log: Log) -> None:
    noting_log.seconds = 0.05
    source = Source("s")
    for _ in range(10):
        write(flusher, [source], is_urgent=True)
        await asyncio.sleep(0.01)
    await rest(flusher)
    starts = [at for at, _ in noting_log.rounds]
    assert all(round(later - earlier, 9) >= noting_log.seconds for earlier, later in pairwise(starts))
    assert list(chain.from_iterable(source.settled)) == ["x"] * 10


async def test_failures_are_retried_at_growing_distance(flusher: Flusher, noting_log: Log) -> None:
    noting_log.failures = [LogUnavailable(), LogUnavailable(), LogUnavailable()]
    source = Source("s")
    write(flusher, [source])
    await asyncio.sleep(0.02)
    for _ in range(5):
        write(flusher, [source], is_urgent=True)  # impatience changes nothing
    await rest(flusher)
    waits = [later - earlier for earlier, later in pairwise([at for at, _ in noting_log.rounds])]
    assert source.missed_count == 3
    assert all(wait >= least for wait, least in zip(waits, (0.049, 0.099, 0.199), strict=False))
    assert source.pending == []


async def test_a_broken_log_is_reported_and_retried(flusher: Flusher, noting_log: Log, caplog: Any) -> None:
    noting_log.failures = [ZeroDivisionError()]
    source = Source("s")
    write(flusher, [source])
    await rest(flusher)
    assert (source.missed_count, source.pending) == (1, [])
    assert "stream flusher failed" in caplog.text


async def test_a_forgotten_writer_is_not_asked(flusher: Flusher, noting_log: Log) -> None:
    one, two = Source("a"), Source("b")
    write(flusher, [one, two])
    await asyncio.sleep(0.01)
    write(flusher, [one, two])
    flusher.forget(one)
    await rest(flusher)
    assert noting_log.rounds[1][1] == ["b"]
