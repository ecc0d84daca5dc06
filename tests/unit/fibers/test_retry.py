"""Delays between tries."""

import pytest

from fibers.core.retry import RetryPolicy

POLICY = RetryPolicy()


def test_delays_double_from_two_seconds_to_thirty() -> None:
    full = [POLICY.delay_seconds(n, jitter=1.0) for n in range(1, 8)]
    assert full == [2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize("failures", [1, 3, 5, 100])
def test_jitter_takes_at_most_half(failures: int) -> None:
    whole = POLICY.delay_seconds(failures, jitter=1.0)
    assert POLICY.delay_seconds(failures, jitter=0.0) == whole / 2
    assert whole / 2 < POLICY.delay_seconds(failures, jitter=0.3) < whole


def test_a_very_long_series_does_not_overflow() -> None:
    assert POLICY.delay_seconds(10**6, jitter=1.0) == 30


def test_what_the_other_side_asked_for_wins() -> None:
    assert POLICY.delay_seconds(5, jitter=0.5, asked_seconds=1.5) == 1.5
    assert POLICY.delay_seconds(5, jitter=0.5, asked_seconds=-3) == 0
