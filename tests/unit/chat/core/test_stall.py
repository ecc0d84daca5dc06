"""The watch over a silent model."""

import pytest

from chat.core.stall import StallWatch


def test_silence_of_the_whole_timeout_is_a_stall() -> None:
    watch = StallWatch(timeout_seconds=30, last_chunk_at=100)
    assert not watch.is_stalled(129.9)
    assert watch.is_stalled(130)


def test_every_chunk_starts_the_time_anew() -> None:
    watch = StallWatch(timeout_seconds=30, last_chunk_at=100)
    watch.heard(120)
    assert not watch.is_stalled(149)
    assert watch.is_stalled(150)


def test_clock_that_goes_back_is_ignored() -> None:
    watch = StallWatch(timeout_seconds=30, last_chunk_at=100)
    watch.heard(10)
    assert watch.seconds_left(100) == 30


@pytest.mark.parametrize(("now", "left"), [(100, 30), (120, 10), (200, 0)])
def test_time_left(now: float, left: float) -> None:
    assert StallWatch(timeout_seconds=30, last_chunk_at=100).seconds_left(now) == left


@pytest.mark.parametrize("timeout", [0, -1])
def test_without_a_timeout_nothing_stalls(timeout: float) -> None:
    watch = StallWatch(timeout_seconds=timeout, last_chunk_at=0)
    assert not watch.is_stalled(1e9)
    assert watch.seconds_left(1e9) is None
