"""`/v1/stream/{path}`: durable streams of the caller's own. Source: the Durable Streams protocol, 1.0 draft."""

from urllib.parse import quote, unquote

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chat.durable_streams import wire
from chat.durable_streams.conf import durable_stream_settings
from chat.durable_streams.errors import StreamReadOnly, StreamRequestInvalid
from chat.durable_streams.finding import CONVERSATIONS, TURNS, find_stream
from chat.durable_streams.live import watching
from chat.durable_streams.reading import ReadStart, StreamRead, open_read, read_chunk, read_next
from chat.durable_streams.writing import Addition, Creation, append, create_stream, delete_stream
from chat.http.api.authentication import Caller
from chat.http.durable_streams.answers import NO_STORE, ROOT, empty, root_of, stream_caller, stream_door
from chat.http.durable_streams.pieces import Pieces, Reading, ReadPiece, answer_read, read_mode
from chat.models import DurableStream
from thinkproject.kernel.aio import db


@stream_door("GET", "HEAD", "POST", "PUT", "DELETE")
async def durable_stream(request: HttpRequest, path: str) -> HttpResponseBase:
    """Create, append to, read, follow, describe or delete a stream."""
    if request.method == "GET":
        offset, live = read_mode(request)
        caller, start, chunk = await db(_open, request, path, offset)
        is_now = start.is_now and not live
        reading = Reading(pieces=_pieces(start.stream, chunk), content_type=start.stream.content_type, is_now=is_now)
        return await answer_read(request, caller, reading, live)
    return await db({"HEAD": _head, "PUT": _put, "POST": _post, "DELETE": _delete}[str(request.method)], request, path)


async def _pieces(stream: DurableStream, chunk: StreamRead) -> Pieces:
    """From a chunk that was read on; waits at the end without a database connection."""
    yield _piece(stream, chunk)
    while not chunk.is_up_to_date:
        try:
            chunk = await db(read_next, stream.pk, chunk.next)
        except DurableStream.DoesNotExist:
            return
        yield _piece(stream, chunk)
    if chunk.is_closed:
        return
    async with watching(stream.pk) as watch:
        position = chunk.next
        while True:
            version = watch.version
            found = await watch.read(position)
            if found is None:
                return
            if found.data or found.is_closed:
                position = found.next
                yield _piece(stream, found)
            if found.is_closed:
                return
            if found.is_up_to_date:
                await watch.wait(version)


def _piece(stream: DurableStream, chunk: StreamRead) -> ReadPiece:
    body = chunk.body(is_json=stream.is_json)
    end = ":c" if chunk.is_closed else ""
    return ReadPiece(
        body=body,
        has_data=bool(chunk.data),
        offset=wire.format_offset(chunk.next),
        etag=f"{stream.pk}:{chunk.start}:{chunk.next}{end}",
        is_up_to_date=chunk.is_up_to_date,
        is_closed=chunk.is_closed,
    )


# What follows asks the database and runs off the loop, the reading of a large body too.


def _open(request: HttpRequest, path: str, offset: str) -> tuple[Caller, ReadStart, StreamRead]:
    caller = stream_caller(request)
    start = open_read(caller.user.pk, path, offset)
    return caller, start, read_chunk(start.stream, start.position)


def _head(request: HttpRequest, path: str) -> HttpResponseBase:
    stream = find_stream(stream_caller(request).user.pk, path)
    return empty(200, {**_facts(stream), "Cache-Control": NO_STORE})


def _put(request: HttpRequest, path: str) -> HttpResponseBase:
    owner_id, headers = stream_caller(request).user.pk, request.headers
    forked_from, sub = headers.get("Stream-Forked-From"), headers.get("Stream-Fork-Sub-Offset")
    if sub is not None and forked_from is None:
        raise StreamRequestInvalid("Stream-Fork-Sub-Offset needs a Stream-Forked-From.")
    ttl, expires = wire.parse_ttl(headers.get("Stream-TTL")), wire.parse_expires(headers.get("Stream-Expires-At"))
    if ttl is not None and expires is not None:
        raise StreamRequestInvalid("A stream has Stream-TTL or Stream-Expires-At, not both.")
    wanted = Creation(
        path=path,
        content_type=wire.parse_type(headers.get("Content-Type")),
        body=_body(request),
        ttl_seconds=ttl,
        expires_at=expires,
        is_closed=wire.is_true(headers.get("Stream-Closed")),
        forked_from=None if forked_from is None else _source_path(forked_from),
        fork_offset=headers.get("Stream-Fork-Offset"),
        fork_sub=0 if sub is None else wire.parse_number(sub, "Stream-Fork-Sub-Offset"),
    )
    stream, is_new = create_stream(owner_id, wanted)
    answer = _facts(stream)
    if is_new:
        answer["Location"] = f"{root_of(request)}/{quote(path)}"
    return empty(201 if is_new else 200, answer)


def _post(request: HttpRequest, path: str) -> HttpResponseBase:
    headers = request.headers
    owner_id = stream_caller(request).user.pk
    wanted = Addition(
        path=path,
        content_type=wire.parse_type(headers.get("Content-Type")),
        body=_body(request),
        closes=wire.is_true(headers.get("Stream-Closed")),
        seq=headers.get("Stream-Seq"),
        producer=wire.parse_producer(
            headers.get("Producer-Id"), headers.get("Producer-Epoch"), headers.get("Producer-Seq")
        ),
    )
    if wanted.seq is not None and len(wanted.seq) > 400:
        raise StreamRequestInvalid("Stream-Seq has up to 400 characters.")
    added = append(owner_id, wanted)
    answer = {"Stream-Next-Offset": wire.format_offset(added.tail)}
    if added.is_closed:
        answer["Stream-Closed"] = "true"
    if added.producer is not None:
        answer |= {"Producer-Epoch": str(added.producer.epoch), "Producer-Seq": str(added.producer.seq)}
    return empty(200 if added.is_new and added.producer is not None else 204, answer)


def _delete(request: HttpRequest, path: str) -> HttpResponseBase:
    delete_stream(stream_caller(request).user.pk, path)
    return empty(204, {})


def _facts(stream: DurableStream) -> dict[str, str]:
    facts = {"Content-Type": stream.content_type, "Stream-Next-Offset": wire.format_offset(stream.tail)}
    if stream.ttl_seconds is not None:
        facts["Stream-TTL"] = str(stream.ttl_seconds)
    elif stream.expires_at is not None:
        facts["Stream-Expires-At"] = stream.expires_at.isoformat().replace("+00:00", "Z")
    if stream.closed_at is not None:
        facts["Stream-Closed"] = "true"
    return facts


def _body(request: HttpRequest) -> bytes:
    """The body. The server refuses larger ones before they are read, but for those that every address may have."""
    body = request.body
    if len(body) > durable_stream_settings.append_bytes:
        raise RequestDataTooBig
    return body


def _source_path(header: str) -> str:
    """The path that a header names: below the root, or below the server's."""
    text = unquote(header)
    _, found, rest = text.partition(ROOT)
    path = rest if found else text.lstrip("/")
    if path.partition("/")[0] in {TURNS, CONVERSATIONS}:
        raise StreamReadOnly("The streams of turns and conversations cannot be forked.")
    return path
