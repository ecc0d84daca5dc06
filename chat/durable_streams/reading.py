"""Reads of a stream from a position: its own entries, or those of the stream that it was forked from."""

from dataclasses import dataclass
from typing import Final

from chat.durable_streams import messages, wire
from chat.durable_streams.errors import StreamRequestInvalid
from chat.durable_streams.finding import find_stream, renew
from chat.models import DurableStream, StreamEntry

CHUNK_BYTES: Final = 1024 * 1024
CHUNK_ROWS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRead:
    """Bytes after a position, up to so many. `next`: the position after it."""

    data: bytes
    start: int
    next: int
    is_up_to_date: bool
    is_closed: bool  # and all of it has been read

    def body(self, *, is_json: bool) -> bytes:
        """The bytes as an answer has them."""
        return messages.as_array(self.data) if is_json else self.data


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStart:
    """A stream that is read, and the position from which."""

    stream: DurableStream
    position: int
    is_now: bool


def open_read(owner_id: int, path: str, offset: str) -> ReadStart:
    """Find a stream for a read from an offset, and note that it is used.

    Errors: `DurableStreamNotFound`, `DurableStreamGone`, `StreamRequestInvalid` for an offset that it does not have.
    """
    parsed = None if offset in {wire.BEGINNING, wire.NOW} else wire.parse_offset(offset)
    stream = find_stream(owner_id, path)
    position = 0 if offset == wire.BEGINNING else stream.tail
    if parsed is not None:
        life, position = parsed
        if life or position > stream.tail:
            raise StreamRequestInvalid("The stream does not have this offset.")
    renew(stream)
    return ReadStart(stream=stream, position=position, is_now=offset == wire.NOW)


def read_chunk(stream: DurableStream, position: int) -> StreamRead:
    """Read from a position of a stream, whose row says how far it goes. A query for each fork on the way, and one."""
    found, following = b"", position
    while following < stream.tail and len(found) < CHUNK_BYTES:
        holder, piece = _stored(stream, following)
        found += piece
        following = position + len(found)
        if holder == stream.pk:  # a fork's source is followed by what comes after it
            break
    is_up_to_date = following >= stream.tail
    return StreamRead(
        data=found,
        start=position,
        next=following,
        is_up_to_date=is_up_to_date,
        is_closed=is_up_to_date and stream.closed_at is not None,
    )


def read_next(stream_id: int, position: int) -> StreamRead:
    """Read from a position of a stream, with its row as it is now. Errors: `DurableStream.DoesNotExist`."""
    return read_chunk(DurableStream.objects.get(pk=stream_id), position)


def position_after(source: DurableStream, base: int, count: int) -> int:
    """The position so many bytes, or messages of a JSON stream, after another. Errors: `StreamRequestInvalid`."""
    if not count:
        return base
    if not source.is_json:
        if base + count > source.tail:
            raise StreamRequestInvalid("Stream-Fork-Sub-Offset is beyond the end of the stream.")
        return base + count
    position = base
    while position < source.tail:
        ends = messages.boundaries(_stored(source, position)[1])
        if count <= len(ends):
            return position + ends[count - 1]
        count -= len(ends)
        position += ends[-1]
    raise StreamRequestInvalid("Stream-Fork-Sub-Offset is beyond the end of the stream.")


def _stored(stream: DurableStream, position: int) -> tuple[int, bytes]:
    """Bytes from a position before the end: whole entries but for the first and, of a fork's source, the last.

    With the key of the stream that they are in: this one or one that it was forked from.
    """
    holder, limit = stream, stream.tail
    while holder.forked_from_id is not None and position < holder.fork_at:
        limit = min(limit, holder.fork_at)
        holder = DurableStream.objects.get(pk=holder.forked_from_id)
    rows = StreamEntry.objects.filter(stream=holder.pk, end__gt=position).order_by("end")
    found = list(rows.filter(end__lte=position + CHUNK_BYTES).values_list("end", "data")[:CHUNK_ROWS])
    if not found:
        found = list(rows.values_list("end", "data")[:1])
    end, first = found[0][0], bytes(found[0][1])
    skipped = position - (end - len(first))
    if skipped and stream.is_json and skipped not in messages.boundaries(first):
        raise StreamRequestInvalid("The stream does not have this offset.")
    data = b"".join([first[skipped:], *(bytes(each) for _, each in found[1:])])
    return holder.pk, data[: limit - position]
