"""Writes to streams: creation and forks, appends, closing, deletion. Sync; each call is one transaction.

The row of a stream is locked while it changes; order of locks: stream, owner, subscription. Durability: what was
answered is committed, and a refusal changes nothing, the state of producers included.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Sum
from django.utils import timezone

from chat.durable_streams import messages, wire
from chat.durable_streams.conf import durable_stream_settings
from chat.durable_streams.errors import (
    DurableStreamGone,
    ProducerFenced,
    StreamConflict,
    StreamRequestInvalid,
)
from chat.durable_streams.finding import checked_path, has_ended, lock_stream, remove_stream, renewed
from chat.durable_streams.reading import position_after
from chat.durable_streams.waking import link_new_stream, note_append
from chat.durable_streams.wire import ProducerClaim
from chat.errors import QuotaExceeded
from chat.models import DurableStream, StreamEntry, StreamProducer
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase

ROW_BYTES: Final = 100
"""Counted by the quota for a row besides its bytes."""
PRODUCER_BYTES: Final = 300
STREAM_BYTES: Final = 1_000
MAX_DEPTH: Final = 16
"""Forks of forks: a read asks for each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """A PUT. `content_type`: nothing for the default, or that of a fork's source. Offsets as they were sent."""

    path: str
    content_type: str | None = None
    body: bytes = field(default=b"", repr=False)
    ttl_seconds: int | None = None
    expires_at: datetime | None = None
    is_closed: bool = False
    forked_from: str | None = None
    fork_offset: str | None = None
    fork_sub: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """A POST."""

    path: str
    content_type: str | None = None
    body: bytes = field(default=b"", repr=False)
    closes: bool = False
    seq: str | None = None
    producer: ProducerClaim | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The outcome of a POST. `is_new`: something was stored. `producer`: the highest that was accepted of it."""

    tail: int
    is_closed: bool
    is_new: bool
    producer: ProducerClaim | None = None


def create_stream(owner_id: int, wanted: Creation) -> tuple[DurableStream, bool]:
    """Make a stream, or find the one that is as wanted; returns whether it was made.

    Errors: `StreamConflict` where the path has another; `StreamRequestInvalid`; `QuotaExceeded`; of a fork's source
    `DurableStreamNotFound`.
    """
    checked_path(wanted.path)
    for is_last in (False, True):
        try:
            with transaction.atomic():
                found = _existing(owner_id, wanted)
                return (found, False) if found is not None else (_create(owner_id, wanted), True)
        except IntegrityError:  # another request made it between the two statements
            if is_last:
                raise
    raise AssertionError


def append(owner_id: int, wanted: Addition) -> Added:
    """Append to a stream, close it, or both at once.

    Errors: `DurableStreamNotFound`, `DurableStreamGone`; `StreamConflict`, `ProducerFenced` with what the protocol
    says in headers; `StreamRequestInvalid`; `QuotaExceeded`.
    """
    if not wanted.body and not wanted.closes:
        raise StreamRequestInvalid("There is nothing to append.")
    if wanted.body and wanted.content_type is None:
        raise StreamRequestInvalid("An append needs a Content-Type.")
    with transaction.atomic():
        stream = lock_stream(owner_id, wanted.path)
        now = timezone.now()
        if stream.closed_at is not None:
            return _to_closed(stream, wanted, now)
        if wanted.body and wire.media_type(wanted.content_type or "") != wire.media_type(stream.content_type):
            raise StreamConflict("The stream has another content type.")
        known = _producer_of(stream, wanted.producer)
        if wanted.producer is not None and not _is_next(wanted.producer, known):
            _save(stream, renewed(stream, now))
            return Added(tail=stream.tail, is_closed=False, is_new=False, producer=_highest(wanted.producer, known))
        if wanted.seq is not None and wanted.seq.encode() <= stream.last_seq.encode() and stream.last_seq:
            raise StreamConflict("Stream-Seq is not above the last one.")
        data = _stored_form(stream, wanted.body)
        _write(stream, wanted, data, now, known)
        return Added(tail=stream.tail, is_closed=wanted.closes, is_new=bool(data), producer=wanted.producer)


def delete_stream(owner_id: int, path: str) -> None:
    """Delete a stream. While forks need its bytes it only seems gone. Errors: as `find_stream`."""
    with transaction.atomic():
        remove_stream(lock_stream(owner_id, path))


def _existing(owner_id: int, wanted: Creation) -> DurableStream | None:
    row = DurableStream.objects.select_for_update().filter(owner_id=owner_id, path=wanted.path).first()
    if row is None:
        return None
    if row.deleted_at is None and has_ended(row):
        remove_stream(row)
        row = DurableStream.objects.filter(pk=row.pk).first()
        if row is None:
            return None
    if row.deleted_at is not None:
        raise StreamConflict("The stream was deleted, and forks still read its beginning.")
    if not _is_same(owner_id, row, wanted):
        raise StreamConflict("There is another stream at this path.")
    return row


def _is_same(owner_id: int, row: DurableStream, wanted: Creation) -> bool:
    source = row.forked_from
    if (source is None) != (wanted.forked_from is None) or (row.closed_at is not None) != wanted.is_closed:
        return False
    type_ = wanted.content_type or (wire.DEFAULT_TYPE if source is None else row.content_type)
    if wire.media_type(type_) != wire.media_type(row.content_type):
        return False
    has_own_end = wanted.ttl_seconds is not None or wanted.expires_at is not None
    if source is None or has_own_end:
        ends = None if row.ttl_seconds is not None else row.expires_at
        if (wanted.ttl_seconds, wanted.expires_at) != (row.ttl_seconds, ends):
            return False
    if source is None:
        return True
    is_same_source = source.owner_id == owner_id and source.path == wanted.forked_from
    base = row.fork_base if wanted.fork_offset is None else wire.parse_offset(wanted.fork_offset)[1]
    return is_same_source and (base, wanted.fork_sub) == (row.fork_base, row.fork_sub)


def _create(owner_id: int, wanted: Creation) -> DurableStream:
    now = timezone.now()
    source = None if wanted.forked_from is None else _source(owner_id, wanted)
    content_type = wanted.content_type or (wire.DEFAULT_TYPE if source is None else source.content_type)
    ttl_seconds, expires_at = wanted.ttl_seconds, wanted.expires_at
    row = DurableStream(
        owner_id=owner_id, path=wanted.path, content_type=content_type, is_json=wire.is_json(content_type), used_at=now
    )
    if source is not None:
        _branch(row, source, wanted)
        if ttl_seconds is None and expires_at is None:
            ttl_seconds = source.ttl_seconds
            expires_at = source.expires_at if ttl_seconds is None else None
    row.ttl_seconds, row.expires_at = ttl_seconds, expires_at
    for name, value in renewed(row, now).items():
        setattr(row, name, value)
    data = _stored_form(row, wanted.body, may_be_empty=True)
    _check_quota(owner_id, STREAM_BYTES + (len(data) + ROW_BYTES if data else 0), is_new=True)
    row.kept_bytes = STREAM_BYTES
    if wanted.is_closed:
        row.closed_at = now
    row.save(force_insert=True)
    begin = row.tail
    if data:
        _insert(row, data)
    row.save(update_fields=["tail", "kept_bytes"])
    link_new_stream(row, begin=begin)
    if data:
        note_append(row)
    return row


def _source(owner_id: int, wanted: Creation) -> DurableStream:
    try:
        source = lock_stream(owner_id, str(wanted.forked_from))
    except DurableStreamGone as error:
        raise StreamConflict("The stream to fork was deleted.") from error
    if wanted.content_type is not None and wire.media_type(wanted.content_type) != wire.media_type(source.content_type):
        raise StreamConflict("A fork has the content type of its source.")
    if source.depth >= MAX_DEPTH:
        raise StreamConflict(Phrase("Forks can follow each other {limit} times.", limit=MAX_DEPTH))
    return source


def _branch(row: DurableStream, source: DurableStream, wanted: Creation) -> None:
    life, base = (0, source.tail) if wanted.fork_offset is None else _fork_offset(wanted.fork_offset)
    if life or base > source.tail:
        raise StreamRequestInvalid("Stream-Fork-Offset is beyond the end of the stream.")
    if wanted.fork_sub and wanted.fork_offset is None:
        raise StreamRequestInvalid("Stream-Fork-Sub-Offset needs a Stream-Fork-Offset.")
    row.forked_from, row.depth = source, source.depth + 1
    row.fork_base, row.fork_sub = base, wanted.fork_sub
    row.fork_at = row.tail = position_after(source, base, wanted.fork_sub)


def _fork_offset(text: str) -> tuple[int, int]:
    return (0, 0) if text == wire.BEGINNING else wire.parse_offset(text)


def _stored_form(stream: DurableStream, body: bytes, *, may_be_empty: bool = False) -> bytes:
    if not body or not stream.is_json:
        return body
    data = messages.split_messages(body)
    if not data and not may_be_empty:
        raise StreamRequestInvalid("There is nothing to append.")
    return data


def _write(stream: DurableStream, wanted: Addition, data: bytes, now: datetime, known: StreamProducer | None) -> None:
    columns: dict[str, object] = dict(renewed(stream, now))
    added = len(data) + ROW_BYTES if data else 0
    if wanted.producer is not None and known is None:
        added += PRODUCER_BYTES
        stream.kept_bytes += PRODUCER_BYTES
    if added:
        _check_quota(stream.owner_id, added, is_new=False)
    if data:
        _insert(stream, data)
    if wanted.producer is not None:
        _note_producer(stream, wanted.producer, known)
    if wanted.seq is not None:
        columns["last_seq"] = wanted.seq
    if wanted.closes:
        columns["closed_at"] = now
        claim = wanted.producer
        columns["closed_by"] = None if claim is None else [claim.id, claim.epoch, claim.seq]
    _save(stream, {**columns, "tail": stream.tail, "kept_bytes": stream.kept_bytes})
    note_append(stream)


def _insert(stream: DurableStream, data: bytes) -> None:
    stream.tail += len(data)
    stream.kept_bytes += len(data) + ROW_BYTES
    StreamEntry.objects.create(stream=stream, end=stream.tail, data=data)


def _save(stream: DurableStream, columns: dict[str, object] | dict[str, datetime]) -> None:
    if columns:
        DurableStream.objects.filter(pk=stream.pk).update(**columns)


def _to_closed(stream: DurableStream, wanted: Addition, now: datetime) -> Added:
    """Answer a write to a closed stream: what closed it may come again, and closing twice is closing once."""
    claim = wanted.producer
    closed = Added(tail=stream.tail, is_closed=True, is_new=False, producer=claim)
    if claim is not None and stream.closed_by == [claim.id, claim.epoch, claim.seq]:
        _save(stream, renewed(stream, now))
        return closed
    if claim is None and wanted.closes and not wanted.body:
        _save(stream, renewed(stream, now))
        return closed
    known = _producer_of(stream, claim)
    if claim is not None and known is not None and claim.epoch < known.epoch:
        raise _fenced(known.epoch)
    raise StreamConflict(
        "The stream is closed.",
        headers={"Stream-Closed": "true", "Stream-Next-Offset": wire.format_offset(stream.tail)},
    )


def _producer_of(stream: DurableStream, claim: ProducerClaim | None) -> StreamProducer | None:
    return None if claim is None else StreamProducer.objects.filter(stream=stream, producer=claim.id).first()


def _is_next(claim: ProducerClaim, known: StreamProducer | None) -> bool:
    """Whether this is the next of a producer; false: it is stored already. Errors as `append`."""
    if known is not None and claim.epoch < known.epoch:
        raise _fenced(known.epoch)
    if known is not None and claim.epoch > known.epoch and claim.seq != 0:
        raise StreamRequestInvalid("A new Producer-Epoch begins with Producer-Seq 0.")
    expected = 0 if known is None or claim.epoch > known.epoch else known.seq + 1
    if claim.seq > expected:
        raise StreamConflict(
            "The producer has left something out.",
            headers={"Producer-Expected-Seq": str(expected), "Producer-Received-Seq": str(claim.seq)},
        )
    return claim.seq == expected


def _fenced(epoch: int) -> ProducerFenced:
    return ProducerFenced(headers={"Producer-Epoch": str(epoch)})


def _highest(claim: ProducerClaim, known: StreamProducer | None) -> ProducerClaim:
    assert known is not None
    return ProducerClaim(id=claim.id, epoch=known.epoch, seq=known.seq)


def _note_producer(stream: DurableStream, claim: ProducerClaim, known: StreamProducer | None) -> None:
    if known is None:
        StreamProducer.objects.create(stream=stream, producer=claim.id, epoch=claim.epoch, seq=claim.seq)
    else:
        StreamProducer.objects.filter(pk=known.pk).update(epoch=claim.epoch, seq=claim.seq)


def _check_quota(owner_id: int, added: int, *, is_new: bool) -> None:
    """Errors: `QuotaExceeded`. Locks the owner: of two appends to two streams the second counts the first."""
    conf = durable_stream_settings.limits
    mine = DurableStream.objects.filter(owner_id=owner_id)
    lock_owner(owner_id)  # for a new stream also because of subscriptions, which are linked with what there is
    limit = conf.streams
    if is_new and limit and mine.order_by()[limit - 1 : limit].exists():
        raise QuotaExceeded(Phrase("You can keep {limit} durable streams. Delete some first.", limit=limit))
    if conf.bytes:
        kept = mine.aggregate(total=Sum("kept_bytes"))["total"] or 0
        if kept + added > conf.bytes:
            raise QuotaExceeded(
                "There is no room for more in your durable streams. Delete some first.", max_bytes=conf.bytes
            )
