"""Delays between tries, and functions that are tried again."""

import asyncio
from typing import Any

import pytest

from thinkproject.kernel.errors import Conflict, Unavailable
from thinkproject.kernel.retry import RETRY, RetryPolicy, retry

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


@pytest.mark.parametrize(
    "values",
    [
        {"attempts": 0},
        {"attempts": 1.5},
        {"attempts": True},
        {"first_seconds": -1},
        {"max_seconds": float("inf")},
        {"first_seconds": 5, "max_seconds": 1},
        {"jitter_share": 1.5},
        {"asked_cap_seconds": float("nan")},
    ],
)
def test_what_is_no_policy_is_refused_at_once(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"seconds|attempts|jitter"):
        RetryPolicy(**values)


class Flaky:
    """Fails so many times."""

    def __init__(self, times: int, error: Exception | None = None) -> None:
        self.times = times
        self.error = error or ConnectionError("no")
        self.seen: list[int] = []

    async def __call__(self, attempt: int) -> str:
        self.seen.append(attempt)
        if attempt <= self.times:
            raise self.error
        return "done"


async def test_three_attempts_are_made_and_the_function_learns_which() -> None:
    flaky = Flaky(2)
    assert await retry(flaky, first_seconds=0, max_seconds=0) == "done"
    assert flaky.seen == [1, 2, 3]
    flaky = Flaky(3)
    with pytest.raises(ConnectionError):
        await retry(flaky, first_seconds=0, max_seconds=0)
    assert flaky.seen == [1, 2, 3]


def test_the_usual_delays_are_short_with_full_jitter() -> None:
    assert [RETRY.delay_seconds(n, jitter=0.0) for n in range(1, 8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0]
    assert RETRY.delay_seconds(5, jitter=1.0) == 0
    assert (RETRY.attempts, RETRY.asked_cap_seconds) == (3, 60)


async def test_an_error_that_does_not_pass_is_not_tried_again() -> None:
    flaky = Flaky(9, Conflict("no"))
    with pytest.raises(Conflict):
        await retry(flaky)
    assert flaky.seen == [1]
    flaky = Flaky(1, Unavailable("wait", retry_after_seconds=0))
    assert await retry(flaky) == "done"


async def test_the_caller_decides_what_is_worth_another_attempt() -> None:
    asked: list[tuple[str, int]] = []

    def should_retry(error: Exception, next_attempt: int) -> bool:
        asked.append((str(error), next_attempt))
        return next_attempt < 3

    flaky = Flaky(9)
    with pytest.raises(ConnectionError):
        await retry(flaky, attempts=9, first_seconds=0, max_seconds=0, should_retry=should_retry)
    assert (asked, flaky.seen) == ([("no", 2), ("no", 3)], [1, 2])


def test_arguments_are_checked_before_anything_is_awaited() -> None:
    with pytest.raises(ValueError, match="attempts"):
        _ = retry(Flaky(0), attempts=0)
    with pytest.raises(ValueError, match="first_seconds"):
        _ = retry(Flaky(0), first_seconds=3, max_seconds=1)


async def test_a_function_that_is_not_async_is_refused() -> None:
    with pytest.raises(TypeError, match="async"):
        await retry(lambda: 1)  # type: ignore[arg-type, return-value]


async def test_a_cancelled_wait_ends_at_once() -> None:
    task = asyncio.ensure_future(retry(Flaky(9), first_seconds=100, max_seconds=100, policy=RetryPolicy(attempts=3)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
