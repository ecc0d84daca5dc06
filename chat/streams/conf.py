"""Settings of the log."""

from django.conf import settings

from thinkproject.kernel.conf import Setting


class StreamSettings:
    """Settings of the streams."""

    window_seconds = Setting(
        "THINK_STREAM_WINDOW_SECONDS",
        0.02,
        doc="Chunks that come faster than this travel together, within twice the time where a worker has a hundred "
        "streams. 0 sends each.",
    )
    cold_seconds = Setting(
        "THINK_STREAM_COLD_SECONDS", 1.0, doc="How long a record may be in Redis alone before the database has it."
    )
    hot_records = Setting(
        "THINK_STREAM_HOT_RECORDS", 10_000, doc="Records of a running turn that stay in Redis for quick replays."
    )
    hot_retention_seconds = Setting(
        "THINK_STREAM_HOT_RETENTION_SECONDS", 600, doc="How long Redis keeps the log of a turn that is over."
    )
    cold_retention_seconds = Setting(
        "THINK_STREAM_COLD_RETENTION_SECONDS", 86_400, doc="How long the database keeps the log of a turn that is over."
    )
    idle_seconds = Setting(
        "THINK_STREAM_IDLE_SECONDS", 2.0, doc="Silence after which a reader asks whether the turn is over and re-reads."
    )
    queue_batches = Setting(
        "THINK_STREAM_QUEUE_BATCHES", 256, doc="Live batches that wait for a slow reader before it has to re-read."
    )

    @property
    def redis_url(self) -> str:
        """URL of the Redis that holds the hot log; empty when the log lives in this process."""
        url: str = getattr(settings, "REDIS_URL", "") or ""
        return url


stream_settings = StreamSettings()
