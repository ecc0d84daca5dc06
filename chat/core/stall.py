"""Whether a model has fallen silent. Times are given, never read."""

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class StallWatch:
    """The last sign of life of one model call.

    Units: seconds of any monotonic clock. `timeout_seconds` 0 or less: never stalled.
    """

    timeout_seconds: float
    last_chunk_at: float

    def heard(self, now: float) -> None:
        """Note a chunk; a clock that went back is ignored."""
        self.last_chunk_at = max(self.last_chunk_at, now)

    def is_stalled(self, now: float) -> bool:
        """Whether nothing came for the whole timeout."""
        return self.timeout_seconds > 0 and now - self.last_chunk_at >= self.timeout_seconds

    def seconds_left(self, now: float) -> float | None:
        """How long to wait for the next chunk before asking again; `None` when there is no limit."""
        return max(0.0, self.timeout_seconds - (now - self.last_chunk_at)) if self.timeout_seconds > 0 else None
