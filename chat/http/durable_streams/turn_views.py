"""`/v1/stream/turns/{id}`: the log of a turn as a stream of JSON messages, to read only.

An offset has the log's life and the number of chunks. A log that began anew has other offsets, so what a reader of the
former one asks for is gone.
"""

import hashlib
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone

from chat.access.auth import open_turn
from chat.durable_streams import wire
from chat.durable_streams.errors import DurableStreamGone, StreamReadOnly, StreamRequestInvalid
from chat.http.api.authentication import Caller
from chat.http.durable_streams.answers import NO_STORE, empty, stream_caller, stream_door
from chat.http.durable_streams.pieces import Pieces, Reading, ReadPiece, answer_read, read_mode
from chat.models import Role, Turn
from chat.reads.snapshots import is_final
from chat.streams.logs.database_log import RETENTION_SECONDS
from chat.streams.reader import find_end, follow
from chat.streams.records import End, Record, Reset
from thinkproject.kernel.aio import db

CONTENT_TYPE = "application/json"


@stream_door("GET", "HEAD", "POST", "PUT", "DELETE")
async def turn_stream(request: HttpRequest, turn_id: str) -> HttpResponseBase:
    """Read, follow or describe the log of a turn."""
    mode = read_mode(request) if request.method == "GET" else ("", "")
    caller, turn = await db(_open, request, turn_id)
    if request.method not in {"GET", "HEAD"}:
        raise StreamReadOnly
    # Asked before the end: what the turn wrote before it was over is then before that end.
    is_over = await db(is_final, turn.pk)
    end, epoch = await find_end(turn.pk)
    if not end and turn.finished_at is not None and turn.finished_at < _kept_since():
        raise DurableStreamGone("The log of this turn is not kept any more; its message is in the conversation.")
    life = _life(epoch)
    if request.method == "HEAD":
        facts = {"Content-Type": CONTENT_TYPE, "Stream-Next-Offset": wire.format_offset(end, life)}
        closed = {"Stream-Closed": "true"} if is_over else {}
        return empty(200, {**facts, **closed, "Cache-Control": NO_STORE})
    offset, live = mode
    reading = Reading(
        pieces=_pieces(turn.pk, _position(offset, end, life), epoch),
        content_type=CONTENT_TYPE,
        is_now=offset == wire.NOW and not live,
        instance=turn.instance,
    )
    return await answer_read(request, caller, reading, live)


def _open(request: HttpRequest, turn_id: str) -> tuple[Caller, Turn]:
    caller = stream_caller(request)
    return caller, open_turn(caller.user, turn_id, needs=Role.READER)


async def _pieces(turn_id: str, position: int, epoch: str | None) -> Pieces:
    """The log from a position on: pages of what there is, then what comes, until the turn is over or begins anew."""

    async def is_over() -> bool:
        return await db(is_final, turn_id)

    held: ReadPiece | None = None
    is_caught_up = False
    async with aclosing(follow(turn_id, position, is_over=is_over, epoch=epoch)) as events:
        async for event in events:
            if isinstance(event, Reset):
                return
            if isinstance(event, list):
                if epoch is None:  # the turn had not begun
                    _, epoch = await find_end(turn_id)
                if held is not None:
                    yield held
                piece, position = _piece(turn_id, position, epoch, event), position + len(event)
                # A page of the past is held back until what follows says whether it reaches the end.
                held = None if is_caught_up else piece
                if is_caught_up:
                    yield replace(piece, is_up_to_date=True)
                continue
            last, held = held or _piece(turn_id, position, epoch, []), None
            is_caught_up, is_end = True, isinstance(event, End)
            yield replace(last, is_up_to_date=True, is_closed=is_end, etag=last.etag + ":c" * is_end)
            if is_end:
                return


def _piece(turn_id: str, position: int, epoch: str | None, records: list[Record]) -> ReadPiece:
    life, following = _life(epoch), position + len(records)
    return ReadPiece(
        body=("[" + ",".join(record.text for record in records) + "]").encode(),
        has_data=bool(records),
        offset=wire.format_offset(following, life),
        etag=f"{turn_id}:{life}:{position}:{following}",
        is_up_to_date=False,
        is_closed=False,
    )


def _position(offset: str, end: int, life: int) -> int:
    if offset in {wire.BEGINNING, wire.NOW}:
        return end if offset == wire.NOW else 0
    asked, position = wire.parse_offset(offset)
    if position and asked != life:
        raise DurableStreamGone("The log began anew; read it from its beginning.")
    if position > end:
        raise StreamRequestInvalid("The stream does not have this offset.")
    return position


def _life(epoch: str | None) -> int:
    """The first number of the offsets of a log's life; 0 of one that has not begun."""
    return 0 if epoch is None else int(hashlib.sha256(epoch.encode()).hexdigest()[:13], 16) % 10**16


def _kept_since() -> datetime:
    return timezone.now() - timedelta(seconds=RETENTION_SECONDS)
