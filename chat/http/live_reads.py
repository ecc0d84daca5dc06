"""Limits the live reads of one person in one process: event streams and long polls, of whatever."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from chat.durable_streams.conf import durable_stream_settings
from chat.errors import QuotaExceeded
from thinkproject.kernel.phrases import Phrase

_READERS: Final[dict[Any, int]] = {}


def check_live_reads(user_id: Any) -> None:
    """Refuse one more live read than a person may have. Errors: `QuotaExceeded`."""
    limit = durable_stream_settings.limits.readers
    if limit and _READERS.get(user_id, 0) >= limit:
        raise QuotaExceeded(Phrase("You can have {limit} live reads at a time.", limit=limit), retry_after_seconds=5)


@contextmanager
def live_read(user_id: Any) -> Iterator[None]:
    """Count a live read as long as it lasts."""
    _READERS[user_id] = _READERS.get(user_id, 0) + 1
    try:
        yield
    finally:
        _READERS[user_id] -= 1
        if not _READERS[user_id]:
            del _READERS[user_id]
