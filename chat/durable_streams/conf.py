"""Settings of the Durable Streams server."""

from thinkproject.kernel.conf import MachineLimit, PeopleLimit


class DurableStreamSettings:
    """Read at each use; 0 is no limit where the text says it."""

    streams_per_user = PeopleLimit("THINK_DURABLE_STREAMS_PER_USER", 1_000)
    """Durable streams that one user may keep; 0: no limit. Raise it where programs make a stream for each job."""

    quota_bytes = PeopleLimit("THINK_DURABLE_STREAMS_QUOTA_BYTES", 256 * 1024 * 1024)
    """Bytes in all durable streams of one user, each append counted with the 100 that its row takes; 0: no limit. Raise
    it where the database's disk has room."""

    append_max_bytes = PeopleLimit("THINK_DURABLE_STREAMS_APPEND_BYTES", 4 * 1024 * 1024)
    """Largest body of one append, up to 16 MiB. Raise it where writers cannot send less at once; readers hold as much
    in memory."""

    requests_per_minute = PeopleLimit("THINK_DURABLE_STREAMS_REQUESTS_PER_MINUTE", 6_000)
    """Requests to durable streams that one user may send within a minute; 0: no limit. Raise it for many writers."""

    readers_per_user = PeopleLimit("THINK_DURABLE_STREAMS_READERS_PER_USER", 200)
    """Live reads of one user that wait in one web process at a time; 0: no limit. Raise it for many readers."""

    subscriptions_per_user = PeopleLimit("THINK_DURABLE_STREAMS_SUBSCRIPTIONS_PER_USER", 100)
    """Subscriptions that one user may keep; 0: no limit. Raise it where each job has its own."""

    long_poll_seconds = MachineLimit("THINK_DURABLE_STREAMS_LONG_POLL_SECONDS", 25.0)
    """Seconds for which a long poll waits for something new. Lower it where a proxy cuts idle requests."""

    sse_seconds = MachineLimit("THINK_DURABLE_STREAMS_SSE_SECONDS", 60.0)
    """Seconds that one event stream lasts before its reader connects again. Raise it where connecting is dear."""

    webhook_networks = MachineLimit[tuple[str, ...] | list[str]]("THINK_DURABLE_STREAMS_WEBHOOK_NETWORKS", ())
    """Networks (`10.0.0.0/8`) that are not public and that webhooks may be sent to, by plain HTTP too. Set it where
    your workers are in one."""


durable_stream_settings = DurableStreamSettings()
