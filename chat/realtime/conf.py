"""Settings of sockets."""

from thinkproject.kernel.conf import MachineLimit, PeopleLimit


class RealtimeSettings:
    """Read at each use. Zero switches off the limits whose text mentions it."""

    max_frame_bytes = MachineLimit("THINK_MAX_FRAME_BYTES", 16 * 1024 * 1024)
    """Size of an inbound socket frame at most. Lower it where clients send no whole transcripts."""

    frame_bytes_per_minute = PeopleLimit("THINK_FRAME_BYTES_PER_MINUTE", 128 * 1024 * 1024)
    """Inbound bytes a minute for one user, over all sockets of a web process; beyond it closes with 4429. 0 is no
    limit. Raise it for programs that send long transcripts often."""


realtime_settings = RealtimeSettings()
