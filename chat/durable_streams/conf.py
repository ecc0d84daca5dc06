"""Settings of the Durable Streams server."""

from dataclasses import dataclass

from django.conf import settings

from thinkproject.kernel.conf import PeopleLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """Limits of one user, but for the times. They bound what streams cost the machine, above all its disk."""

    streams: int = 1_000
    bytes: int = 256 * 1024 * 1024  # in all of them, each append counted with the 100 that its row takes
    append_bytes: int = 4 * 1024 * 1024  # of one body; readers hold as much in memory
    requests_per_minute: int = 6_000
    readers: int = 200  # live reads that wait in one web process
    subscriptions: int = 100
    long_poll_seconds: float = 25.0
    sse_seconds: float = 60.0  # that one event stream lasts before its reader connects again


class DurableStreamSettings:
    """Read at each use."""

    limits = PeopleLimit("THINK_DURABLE_STREAMS", StreamLimits())
    """Limits of durable streams: streams, bytes, bytes of one append (16 MiB at most), requests in a minute, live reads
    in one process and subscriptions of one user; seconds of a long poll and of one event stream. Raise them where
    programs write much; lower the seconds where a proxy cuts idle connections."""

    @property
    def append_bytes(self) -> int:
        """Bytes of one append: no more than a request may have at this site, which is 2.5 MB by Django's default."""
        return min(self.limits.append_bytes, settings.DATA_UPLOAD_MAX_MEMORY_SIZE or self.limits.append_bytes)


durable_stream_settings = DurableStreamSettings()
