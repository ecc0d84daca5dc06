"""Delays between tries."""

import pytest

from thinkproject.kernel.retry import RetryPolicy

POLICY = RetryPolicy()


def test_delays_double_from_two_seconds_to_thirty() -> None:
    assert [POLICY.delay_seconds(n, jitter=0.0) for n in range(1, 8)] == [2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize("failures", [1, 3, 5, 100])
@pytest.mark.parametrize("share", [0.25, 0.5])
def test_jitter_takes_its_share_at_most(failures: int, share: float) -> None:
    policy = RetryPolicy(jitter_share=share)
    whole = policy.delay_seconds(failures, jitter=0.0)
    assert policy.delay_seconds(failures, jitter=1.0) == whole * (1 - share)
    assert whole * (1 - share) < policy.delay_seconds(failures, jitter=0.3) < whole


def test_a_very_long_series_does_not_overflow() -> None:
    assert POLICY.delay_seconds(10**6, jitter=0.0) == 30


def test_what_the_other_side_asked_for_wins_up_to_the_cap() -> None:
    assert POLICY.delay_seconds(5, jitter=0.5, asked_seconds=1.5) == 1.5
    assert POLICY.delay_seconds(5, jitter=0.5, asked_seconds=-3) == 0
    assert RetryPolicy(asked_cap_seconds=60).delay_seconds(1, jitter=0.5, asked_seconds=3600) == 60
