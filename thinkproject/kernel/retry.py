"""When to try again: delays that double, with jitter. One policy for everything that retries."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Retry policy: number of attempts and delays. Pure: randomness is passed in.

    `attempts` counts the first one. `jitter_share` is the part of a delay that jitter may take away, and
    `asked_cap_seconds` the longest delay that the other side may ask for.
    """

    attempts: int = 1
    first_seconds: float = 2.0
    max_seconds: float = 30.0
    jitter_share: float = 0.5
    asked_cap_seconds: float = float("inf")

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
