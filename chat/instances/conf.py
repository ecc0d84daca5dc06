"""Quotas of what one user stores and starts."""

from thinkproject.kernel.conf import PeopleLimit


class QuotaSettings:
    """Read at each use; 0 is no limit."""

    instances_per_user = PeopleLimit("THINK_INSTANCES_PER_USER", 10_000)
    """Conversations one user may keep, sub-agents counted; 0: no limit. Lower it where strangers sign up."""

    messages_per_minute = PeopleLimit("THINK_MESSAGES_PER_MINUTE", 1_000)
    """Messages that one user may add within a minute without asking for an answer; an import fills the minute. 0: no
    limit. Raise it for programs that write conversations."""

    messages_per_user = PeopleLimit("THINK_MESSAGES_PER_USER", 1_000_000)
    """Stored messages of one user beyond which none are added or imported; 0: no limit. Lower it where strangers sign
    up."""

    messages_quota_bytes = PeopleLimit("THINK_MESSAGES_QUOTA_BYTES", 4 * 1024 * 1024 * 1024)
    """Bytes of stored messages of one user beyond which none are added or imported; 0: no limit. Lower it where the
    database's disk is small."""

    fibers_per_user = PeopleLimit("THINK_FIBERS_PER_USER", 1_000)
    """Background work of one user's agents (`spawn_fiber`) that has not ended; 0: no limit. Raise it for agents that
    spread their work."""

    fibers_per_minute = PeopleLimit("THINK_FIBERS_PER_MINUTE", 300)
    """Background work that one user's agents may start in a minute; 0: no limit. Raise it for agents that spread their
    work."""


quota_settings = QuotaSettings()
