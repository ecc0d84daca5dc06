"""Streams by owner and path, with their end of life. A stream whose lifetime is over is as if it were not there."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from chat.durable_streams.errors import DurableStreamGone, DurableStreamNotFound, StreamRequestInvalid
from chat.instances.notifications import notify_on_commit, stream_group
from chat.models import DurableStream, SubscriptionLink

MAX_PATH: Final = 400
RESERVED: Final = "__ds"
"""First segment of the addresses of subscriptions."""
TURNS: Final = "turns"
"""First segment of the streams of turns."""
CONVERSATIONS: Final = "conversations"
"""First segment of the streams of conversations."""
_BATCH: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """The end of a stream, and whether it is one for good."""

    tail: int
    is_closed: bool


def checked_path(path: str) -> str:
    """A path that streams may have. Errors: `StreamRequestInvalid`."""
    segments = path.split("/")
    if not path or len(path) > MAX_PATH or "\x00" in path or segments[0] == RESERVED:
        raise StreamRequestInvalid("The path of a stream has 1 to 400 characters and does not begin with __ds.")
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise StreamRequestInvalid("The path of a stream is not valid.") from error
    return path


def find_stream(owner_id: int, path: str) -> DurableStream:
    """The owner's live stream of this path. Errors: `DurableStreamNotFound`, `DurableStreamGone`. One query."""
    row = DurableStream.objects.filter(owner_id=owner_id, path=checked_path(path)).first()
    return _live(row)


def lock_stream(owner_id: int, path: str) -> DurableStream:
    """The same, locked until the transaction ends."""
    rows = DurableStream.objects.select_for_update().filter(owner_id=owner_id, path=checked_path(path))
    return _live(rows.first())


def state_for_readers(stream_id: int) -> StreamState:
    """Look how far a stream goes that readers wait at, which is a use. Errors: as `find_stream`. One query, mostly."""
    row = _live(DurableStream.objects.filter(pk=stream_id).first())
    renew(row)
    return StreamState(tail=row.tail, is_closed=row.closed_at is not None)


def has_ended(row: DurableStream, now: datetime | None = None) -> bool:
    """Whether the lifetime of a stream is over."""
    return row.expires_at is not None and row.expires_at <= (now or timezone.now())


def renewed(row: DurableStream, now: datetime) -> dict[str, datetime]:
    """The columns that a use at this time changes; none where it changes little.

    The end of a stream with a lifetime is a twentieth later than promised, so that it need not be written at each use.
    """
    if row.ttl_seconds is None:
        return {}
    slack = timedelta(seconds=min(row.ttl_seconds / 20, 60.0))
    if row.expires_at is not None and now - row.used_at < slack:
        return {}
    return {"used_at": now, "expires_at": now + timedelta(seconds=row.ttl_seconds) + slack}


def renew(row: DurableStream) -> None:
    """Note that a stream was used. One statement at most."""
    if columns := renewed(row, timezone.now()):
        DurableStream.objects.filter(pk=row.pk).update(**columns)


def remove_stream(row: DurableStream) -> None:
    """Remove a stream, or hide it while forks need it. What only it had kept goes too. In a transaction."""
    now = timezone.now()
    following: DurableStream | None = row
    while following is not None:
        stream, following = following, None
        if DurableStream.objects.filter(forked_from=stream.pk).exists():
            DurableStream.objects.filter(pk=stream.pk).update(deleted_at=now)
            return
        source_id = stream.forked_from_id
        SubscriptionLink.objects.filter(owner=stream.owner_id, path=stream.path, is_explicit=False).delete()
        notify_on_commit(stream_group(stream.pk), {"type": "stream.changed"})
        stream.delete()
        if source_id is not None:
            # A source that only waited for its last fork; one that is used goes on.
            following = DurableStream.objects.select_for_update().filter(pk=source_id, deleted_at__isnull=False).first()


def remove_ended(*, dry_run: bool = False) -> int:
    """Remove some of the streams whose lifetime is over. Returns how many (or would be)."""
    ended = DurableStream.objects.filter(expires_at__lte=timezone.now(), deleted_at=None)
    if dry_run:
        return ended.count()
    removed = 0
    for stream_id in list(ended.values_list("pk", flat=True)[:_BATCH]):
        with transaction.atomic():
            row = ended.select_for_update().filter(pk=stream_id).first()
            if row is not None:
                remove_stream(row)
                removed += 1
    return removed


def _live(row: DurableStream | None) -> DurableStream:
    if row is None:
        raise DurableStreamNotFound
    if row.deleted_at is not None:
        raise DurableStreamGone
    if has_ended(row):
        raise DurableStreamNotFound
    return row
