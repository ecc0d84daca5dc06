"""The pieces that a read delivers, and the three ways to send it: at once, by long poll, as events."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import parse_etags

from chat.access.auth import holds_role, recheck
from chat.durable_streams import wire
from chat.durable_streams.conf import durable_stream_settings
from chat.durable_streams.errors import DurableStreamGone, DurableStreamNotFound, StreamRequestInvalid
from chat.http.api.authentication import Caller
from chat.http.durable_streams.answers import NO_STORE, empty
from chat.http.live_reads import check_live_reads, live_read
from chat.http.sse import event_body
from chat.models import AgentInstance, Role
from thinkproject.kernel.aio import db


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPiece:
    """Some of a stream. `body`: as an answer has it; `offset`: after it; `etag`: of this read, without quotes."""

    body: bytes
    has_data: bool
    offset: str
    etag: str
    is_up_to_date: bool
    is_closed: bool


Pieces = AsyncGenerator[ReadPiece, None]
"""All that there is, then, once it is up to date, what comes; ends with the stream. The first comes without waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One read. `is_now`: from the end, whose first piece says where that is. `instance`: the conversation it is of."""

    pieces: Pieces
    content_type: str
    is_now: bool
    instance: AgentInstance | None = None  # none: a stream of the caller's own

    def is_allowed(self, caller: Caller) -> bool:
        """Whether a live read may go on: the credential holds, and the caller is still in the conversation."""
        if self.instance is None:
            return recheck(caller.credential)
        return holds_role(caller.credential, self.instance, Role.READER)

    def is_gone(self) -> bool:
        """Whether the conversation was removed: who read it until then may read that."""
        return self.instance is not None and not AgentInstance.objects.filter(pk=self.instance.pk).exists()

    def member_id(self, caller: Caller) -> Any:
        """Key of a caller who reads another person's conversation."""
        is_own = self.instance is None or self.instance.owner_id == caller.user.pk
        return None if is_own else caller.user.pk


def read_mode(request: HttpRequest) -> tuple[str, str]:
    """Offset and way of a GET; the way is empty, `long-poll` or `sse`. Errors: `StreamRequestInvalid`."""
    offsets, live = request.GET.getlist("offset"), request.GET.get("live", "")
    if len(offsets) > 1 or (offsets and not offsets[0]):
        raise StreamRequestInvalid("A read has one offset.")
    if live not in {"", "long-poll", "sse"}:
        raise StreamRequestInvalid("`live` is long-poll or sse.")
    if live and not offsets:
        raise StreamRequestInvalid("A live read needs an offset.")
    return (offsets[0] if offsets else wire.BEGINNING), live


async def answer_read(request: HttpRequest, caller: Caller, reading: Reading, live: str) -> HttpResponseBase:
    """Send what a read delivers. Errors: `QuotaExceeded` for too many live reads."""
    if live:
        check_live_reads(caller.user.pk)
    if live == "sse":
        return _events(request, caller, reading)
    async with aclosing(reading.pieces):
        piece = await _next(reading.pieces)
        if live:
            return await _long_poll(request, caller, reading, piece)
        return _at_once(request, reading, piece)


def _at_once(request: HttpRequest, reading: Reading, piece: ReadPiece) -> HttpResponse:
    headers = _headers(piece)
    if reading.is_now:
        return HttpResponse(
            piece.body, content_type=reading.content_type, headers={**headers, "Cache-Control": NO_STORE}
        )
    # Others must not keep it, and the end may have moved since: it is asked for again, at the price of a 304.
    headers |= {"ETag": f'"{piece.etag}"', "Cache-Control": "private, no-cache"}
    if headers["ETag"] in parse_etags(request.headers.get("If-None-Match", "")):
        return empty(304, headers)
    return HttpResponse(piece.body, content_type=reading.content_type, headers=headers)


async def _long_poll(request: HttpRequest, caller: Caller, reading: Reading, piece: ReadPiece) -> HttpResponse:
    if not piece.has_data and not piece.is_closed:
        with live_read(caller.user.pk), suppress(TimeoutError):
            async with asyncio.timeout(durable_stream_settings.limits.long_poll_seconds):
                piece = await _next(reading.pieces)
        if not await db(reading.is_allowed, caller) and not (piece.is_closed and await db(reading.is_gone)):
            raise DurableStreamNotFound
    headers = {**_headers(piece), "Cache-Control": NO_STORE}
    headers["Stream-Cursor"] = wire.next_cursor(request.GET.get("cursor"))
    if not piece.has_data:
        return empty(204, headers)
    return HttpResponse(piece.body, content_type=reading.content_type, headers=headers)


def _events(request: HttpRequest, caller: Caller, reading: Reading) -> StreamingHttpResponse:
    as_text, cursor = wire.is_text(reading.content_type), request.GET.get("cursor")
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    if not as_text:
        headers["Stream-SSE-Data-Encoding"] = "base64"

    async def still_allowed() -> bool:
        return await db(reading.is_allowed, caller)

    encoded = _encoded(reading.pieces, caller, as_text=as_text, cursor=cursor)
    body = event_body(encoded, still_allowed=still_allowed, member_id=reading.member_id(caller))
    return StreamingHttpResponse(body, content_type="text/event-stream", headers=headers)


async def _encoded(pieces: Pieces, caller: Caller, *, as_text: bool, cursor: str | None) -> AsyncGenerator[bytes, None]:
    """Encode pieces until the stream ends, or this connection has lasted long enough."""
    clock = asyncio.get_running_loop().time
    until = clock() + durable_stream_settings.limits.sse_seconds
    with live_read(caller.user.pk):
        async with aclosing(pieces):
            while (piece := await _next_until(pieces, until - clock())) is not None:
                data = wire.data_event(piece.body, as_text=as_text) if piece.has_data else b""
                yield data + wire.control_event(
                    offset=piece.offset,
                    cursor=wire.next_cursor(cursor),
                    is_up_to_date=piece.is_up_to_date,
                    is_closed=piece.is_closed,
                )


async def _next(pieces: Pieces) -> ReadPiece:
    """The next piece. Errors: `DurableStreamGone` of a stream that was deleted or began anew meanwhile."""
    piece = await anext(pieces, None)
    if piece is None:
        raise DurableStreamGone("The stream was deleted, or began anew.")
    return piece


async def _next_until(pieces: Pieces, seconds: float) -> ReadPiece | None:
    """The next piece; nothing when there is none, or none in time. No `asyncio.timeout`: each step may be a task."""
    step = asyncio.ensure_future(anext(pieces, None))
    try:
        await asyncio.wait({step}, timeout=max(0.0, seconds))
        return step.result() if step.done() else None
    finally:
        if not step.done():
            step.cancel()
            await asyncio.wait({step})


def _headers(piece: ReadPiece) -> dict[str, str]:
    headers = {"Stream-Next-Offset": piece.offset}
    if piece.is_up_to_date:
        headers["Stream-Up-To-Date"] = "true"
    if piece.is_closed:
        headers["Stream-Closed"] = "true"
    return headers
