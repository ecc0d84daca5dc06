"""Settings of the log."""

from django.conf import settings

from thinkproject.kernel.conf import MachineLimit


class StreamSettings:
    """Settings of the streams."""

    window_seconds = MachineLimit("THINK_STREAM_WINDOW_SECONDS", 0.02)
    """Chunks that come faster than this travel together, within twice the time where a worker has a hundred streams. 0
    sends each. Raise it where Redis is short of processor."""

    cold_seconds = MachineLimit("THINK_STREAM_COLD_SECONDS", 1.0)
    """How long a record may be in Redis alone before the database has it. Lower it where Redis is often lost."""

    hot_retention_seconds = MachineLimit("THINK_STREAM_HOT_RETENTION_SECONDS", 600)
    """How long Redis keeps the log of a turn that is over. Lower it where Redis is short of memory."""

    idle_seconds = MachineLimit("THINK_STREAM_IDLE_SECONDS", 2.0)
    """Silence after which a reader asks whether the turn is over and re-reads. Raise it where very many wait."""

    @property
    def redis_url(self) -> str:
        """URL of the Redis that holds the hot log; empty when the log lives in this process."""
        url: str = getattr(settings, "REDIS_URL", "") or ""
        return url


stream_settings = StreamSettings()
