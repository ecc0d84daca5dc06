"""When to try again: delays that double, with jitter. One policy for everything that retries.

`retry` calls an async function under a policy. What holds its own state between tries (a durable fiber, a connection, a
model's stream) asks the policy for its delays.
"""

import asyncio
import inspect
import math
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from thinkproject.kernel.errors import ThinkError

T = TypeVar("T")

ShouldRetry = Callable[[Exception, int], bool]
"""Gets the error and the number of the attempt that would come next, from 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Retry policy: number of attempts and delays. Pure: randomness is passed in.

    `attempts` counts the first one. `jitter_share` is the part of a delay that jitter may take away (1: "full jitter"),
    and `asked_cap_seconds` the longest delay that the other side may ask for. Errors: `ValueError` for what is no
    policy.
    """

    attempts: int = 1
    first_seconds: float = 2.0
    max_seconds: float = 30.0
    jitter_share: float = 0.5
    asked_cap_seconds: float = float("inf")

    def __post_init__(self) -> None:
        attempts: object = self.attempts  # whatever was passed
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise ValueError(f"attempts is a whole number from 1, not {self.attempts!r}")
        for name in ("first_seconds", "max_seconds"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise ValueError(f"{name} is a number of seconds from 0, not {getattr(self, name)!r}")
        if self.first_seconds > self.max_seconds:
            raise ValueError("first_seconds may not be more than max_seconds")
        if not 0 <= self.jitter_share <= 1:
            raise ValueError(f"jitter_share is from 0 to 1, not {self.jitter_share!r}")
        if not self.asked_cap_seconds >= 0:
            raise ValueError(f"asked_cap_seconds is from 0, not {self.asked_cap_seconds!r}")

    def delay_seconds(self, failures: int, *, jitter: float, asked_seconds: float | None = None) -> float:
        """Return how long to wait after the n-th failure in a row (from 1).

        `jitter` is a random number in [0, 1). `asked_seconds` is what the other side asked for (`Retry-After`); it wins
        over the doubling delay and has no jitter.
        """
        if asked_seconds is not None:
            return min(max(0.0, asked_seconds), self.asked_cap_seconds)
        # The exponent is bounded: 2.0 ** 2000 overflows.
        delay = min(self.max_seconds, self.first_seconds * 2.0 ** min(max(failures, 1) - 1, 60))
        return delay * (1 - self.jitter_share * jitter)


RETRY: Final = RetryPolicy(attempts=3, first_seconds=0.1, max_seconds=3.0, jitter_share=1.0, asked_cap_seconds=60.0)
"""The policy of `retry`: 3 attempts, 100 ms doubling to 3 s, full jitter, a minute at most where a server asks."""


def retry(
    function: Callable[..., Awaitable[T]],
    *,
    attempts: int | None = None,
    first_seconds: float | None = None,
    max_seconds: float | None = None,
    should_retry: ShouldRetry | None = None,
    policy: RetryPolicy = RETRY,
) -> Coroutine[Any, Any, T]:
    """Call an async function until it succeeds; return its result, or raise its last error.

    The function gets the number of the attempt, from 1, where it takes an argument. `should_retry` decides about an
    error; without it errors of this product are tried again where they are `retryable`, and all others are. What a
    server asked for (`retry_after_seconds` in an error's `data`) is waited for, up to the policy's cap.

    **Durability:** none: a crash ends it, and the turn's journal decides what runs again. **Errors:** `ValueError` and
    `TypeError` for arguments that make no policy, at once and not when it is awaited; the function's last one.
    """
    given = {"attempts": attempts, "first_seconds": first_seconds, "max_seconds": max_seconds}
    chosen = {name: value for name, value in given.items() if value is not None}
    if first_seconds is not None and max_seconds is None:
        chosen["max_seconds"] = max(policy.max_seconds, first_seconds)
    # Policies that are given are valid; what is mixed of one and of arguments is checked here.
    mixed = replace(policy, **chosen) if chosen else policy  # type: ignore[arg-type] # by name, each of its own type
    if not callable(function):
        raise TypeError(f"{function!r} cannot be called")
    return _tried(function, mixed, should_retry or is_worth_a_retry)


async def _tried(function: Callable[..., Awaitable[T]], policy: RetryPolicy, should_retry: ShouldRetry) -> T:
    takes_number = _takes_an_argument(function)
    attempt = 1
    while True:
        try:
            result = function(attempt) if takes_number else function()
            if not inspect.isawaitable(result):
                raise TypeError("retry() calls async functions; wrap others in asyncio.to_thread()")
            return await result
        except Exception as error:
            if attempt >= policy.attempts or not should_retry(error, attempt + 1):
                raise
            jitter = random.random()  # noqa: S311 - it spreads load, and nothing secret hangs on it
            delay = policy.delay_seconds(attempt, jitter=jitter, asked_seconds=_asked_seconds(error))
        await asyncio.sleep(delay)
        attempt += 1


def is_worth_a_retry(error: Exception, _attempt: int) -> bool:
    """Whether an error may pass by itself: those of this product say so, programming errors never do."""
    if isinstance(error, ThinkError):
        return error.retryable
    return not isinstance(error, TypeError | NameError | AttributeError | NotImplementedError | AssertionError)


def _asked_seconds(error: Exception) -> float | None:
    asked = error.data.get("retry_after_seconds") if isinstance(error, ThinkError) else None
    return float(asked) if isinstance(asked, int | float) else None


def _takes_an_argument(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    return any(parameter.kind in positional and parameter.default is parameter.empty for parameter in parameters)
