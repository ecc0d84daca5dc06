"""`/v1/stream/conversations/{id}`: a conversation in the State Protocol, to read and to follow only.

Nothing of it is stored: an offset is a place of `chat.reads.feed_values`. One whose followers are not kept is gone.
"""

from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chat.access.auth import open_instance
from chat.durable_streams import wire
from chat.durable_streams.errors import DurableStreamGone, StreamReadOnly, StreamRequestInvalid
from chat.feed.errors import FeedGone
from chat.feed.live import watching_feed
from chat.feed.reading import open_feed
from chat.http.api.authentication import Caller
from chat.http.durable_streams.answers import NO_STORE, empty, stream_caller, stream_door
from chat.http.durable_streams.pieces import Pieces, Reading, ReadPiece, answer_read, read_mode
from chat.members.selectors import is_still_in
from chat.models import AgentInstance, Role
from chat.reads.feed_values import WHOLE, StatePage, state_page
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import dump

CONTENT_TYPE: Final = "application/json"
_LONG: Final = 3600.0


@stream_door("GET", "HEAD", "POST", "PUT", "DELETE")
async def conversation_stream(request: HttpRequest, instance_id: str) -> HttpResponseBase:
    """Read, follow or describe a conversation."""
    offset, live = read_mode(request) if request.method == "GET" else (wire.NOW, "")
    caller, instance = await db(_open, request, instance_id)
    if request.method not in {"GET", "HEAD"}:
        raise StreamReadOnly
    now = await db(open_feed, instance.owner_id)
    if request.method == "HEAD":
        facts = {"Content-Type": CONTENT_TYPE, "Stream-Next-Offset": wire.format_offset(WHOLE, now)}
        return empty(200, {**facts, "Cache-Control": NO_STORE})
    seq, read = _place(offset, now)
    following = _Following(caller.user.pk, instance, seq, read)
    first = await db(following.page, seq, read)
    reading = Reading(
        pieces=_pieces(following, first),
        content_type=CONTENT_TYPE,
        is_now=offset == wire.NOW and not live,
        instance=instance,
    )
    return await answer_read(request, caller, reading, live)


def _open(request: HttpRequest, instance_id: str) -> tuple[Caller, AgentInstance]:
    caller = stream_caller(request)
    return caller, open_instance(caller.user, instance_id, needs=Role.READER)


@dataclass(frozen=True, slots=True)
class _Following:
    """One read of a conversation: whose it is, and the place where it begins."""

    user_id: Any
    instance: AgentInstance
    seq: int
    read: int

    def page(self, seq: int, read: int) -> StatePage:
        """Read on from a place. Errors: `DurableStreamGone`, also for a member who is none any more.

        The role is read last, so nothing is shown that was committed after a revocation.
        """
        try:
            page = state_page(self.instance, seq, read)
        except FeedGone as error:
            raise DurableStreamGone("What follows this offset is not kept; read from the beginning.") from error
        if not page.is_over and not is_still_in(self.user_id, self.instance.pk, self.instance.owner_id):
            raise DurableStreamGone
        return page

    def piece(self, page: StatePage) -> ReadPiece:
        """A page as it is delivered."""
        return ReadPiece(
            body=dump(page.messages).encode(),
            has_data=bool(page.messages),
            offset=wire.format_offset(page.read, page.seq),
            etag=f"{self.instance.pk}:{self.seq}:{self.read}:{page.seq}:{page.read}",
            is_up_to_date=page.is_up_to_date,
            is_closed=page.is_over,
        )


def _place(offset: str, now: int) -> tuple[int, int]:
    """The number of the feed at an offset, and how much of the conversation as it was then has been read."""
    if offset in {wire.BEGINNING, wire.NOW}:
        return now, 0 if offset == wire.BEGINNING else WHOLE
    seq, read = wire.parse_offset(offset)
    if seq > now:
        raise StreamRequestInvalid("The stream does not have this offset.")
    return seq, read


async def _pieces(following: _Following, page: StatePage) -> Pieces:
    """From a page that was read on; waits at the end without a database connection."""
    yield following.piece(page)
    try:
        while not page.is_up_to_date:
            page = await db(following.page, page.seq, page.read)
            yield following.piece(page)
        async with watching_feed(following.instance.owner_id) as watch:
            while not page.is_over:
                if page.is_up_to_date:
                    await watch.wait(page.seq, _LONG)
                page = await db(following.page, page.seq, page.read)
                if page.messages:
                    yield following.piece(page)
    except DurableStreamGone:  # its reader connects again, and is answered so
        return
