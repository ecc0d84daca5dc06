"""When to try again: 2 s, doubling to 30 s, with jitter. One policy for everything that retries."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Delays between tries. Pure: randomness is passed in."""

    first_seconds: float = 2.0
    max_seconds: float = 30.0

    def delay_seconds(self, failures: int, *, jitter: float, asked_seconds: float | None = None) -> float:
        """Return how long to wait after the n-th failure in a row (from 1).

        **Units:** `jitter` is a random number in [0, 1); the delay is between half of the step and the whole of it.
        `asked_seconds` is what the other side asked for (`Retry-After`) and wins.
        """
        if asked_seconds is not None:
            return max(0.0, asked_seconds)
        # The exponent is bounded: 2.0 ** 2000 overflows.
        step = min(self.max_seconds, self.first_seconds * 2.0 ** min(max(failures, 1) - 1, 60))
        return step * (1 + jitter) / 2
