"""The API operation that follows the change feed: async, because it is open as long as its reader wants."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Annotated, Any

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Header, Query, Router

from chat.access.auth import open_instance, recheck
from chat.errors import InstanceNotFound
from chat.feed.errors import FeedGone
from chat.feed.live import watching_feed
from chat.feed.reading import FeedPage, NamedChange, open_feed, read_changes
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, Caller, caller_of
from chat.http.conf import http_settings
from chat.http.live_reads import check_live_reads, live_read
from chat.http.sse import CONTENT_TYPE, MAX_OFFSET, event_body, start_offset
from chat.members.selectors import is_still_in
from chat.models import Role
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, dump

router = Router(tags=["events"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])
HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}
_DESCRIPTION = (
    "Server-sent events: what changed in your conversations, or in one that you are in (`instance`), in the order in "
    "which it was committed. The first is `ready`, with the position; each `change` has `instance_id`, `type`, `key`, "
    "`op` (`insert`, `update`, `delete`, or `reset`: all that is below it is gone) and `at`; its `id` is its position. "
    "A `heartbeat` fills each pause. Reconnecting with `Last-Event-ID` (or `after`) goes on there, else it begins now. "
    "With `follow=false` it ends with `end` when all that there is was sent. 410 (`feed_gone`) for a position whose "
    "followers are not kept: read everything anew, and begin now."
)


@router.get(
    "/events",
    operation_id="follow_events",
    summary="Follow what changes",
    description=_DESCRIPTION,
    openapi_extra={"responses": {200: {"description": "Events", "content": {"text/event-stream": {}}}}},
)
async def follow_events(
    request: HttpRequest,
    instance: str = "",
    after: Annotated[int | None, Query(ge=0, le=MAX_OFFSET)] = None,
    follow: bool = True,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> StreamingHttpResponse:
    """Send what changed after a position, and what changes from then on."""
    caller = caller_of(request)
    check_live_reads(caller.user.pk)
    followed = _Followed(caller, await db(_owner_of, caller, instance), instance)
    now = await db(open_feed, followed.owner_id)
    wanted = start_offset(last_event_id, -1) - 1  # the event after the last one: -2 without a header
    position = wanted if wanted >= 0 else now if after is None else after
    first = await db(followed.page, position)

    async def still_allowed() -> bool:
        return await db(followed.is_allowed)

    body = event_body(_events(followed, position, first, follow=follow), still_allowed=still_allowed)
    return StreamingHttpResponse(body, content_type=CONTENT_TYPE, headers=HEADERS)


@dataclass(frozen=True, slots=True)
class _Followed:
    """The feed that a caller follows. `instance`: the conversation, or empty for all of the caller's own."""

    caller: Caller
    owner_id: Any
    instance: str

    def page(self, after: int) -> FeedPage:
        """The changes after a position. Errors: `FeedGone`; `InstanceNotFound` for a member who is none any more.

        The role is read after the changes, so nothing is shown that was committed after a revocation.
        """
        page = read_changes(self.owner_id, after, instance_id=self.instance)
        if not self._is_in():
            raise InstanceNotFound
        return page

    def is_allowed(self) -> bool:
        """Whether the caller is still signed in, and in the conversation."""
        return recheck(self.caller.credential) and self._is_in()

    def _is_in(self) -> bool:
        return is_still_in(self.caller.user.pk, self.instance, self.owner_id)


async def _events(followed: _Followed, position: int, page: FeedPage, *, follow: bool) -> AsyncGenerator[bytes, None]:
    seconds = http_settings.stream_keep_alive_seconds
    with live_read(followed.caller.user.pk):
        yield _encoded("ready", {"position": position}, position)
        try:
            async with watching_feed(followed.owner_id) as watch:
                while True:
                    for change in page.changes:
                        yield _change(change)
                    if page.is_up_to_date and not follow:
                        yield _encoded("end", {"position": page.position}, page.position)
                        return
                    while page.is_up_to_date and not await watch.wait(page.position, seconds):
                        yield _encoded("heartbeat", {"position": page.position}, page.position)
                    page = await db(followed.page, page.position)
        except FeedGone:
            yield _encoded("gone", {"code": FeedGone.code}, None)
        except InstanceNotFound:  # a change of the members is in the feed, so it ends at once
            return


def _owner_of(caller: Caller, instance: str) -> Any:
    """The person whose feed is read: the caller's own, or that of the owner of a conversation that they may read."""
    if not instance:
        return caller.user.pk
    owner_id = open_instance(caller.user, instance, needs=Role.READER).owner_id
    if owner_id is None:
        raise InstanceNotFound
    return owner_id


def _change(change: NamedChange) -> bytes:
    facts: JSONObject = {
        "instance_id": change.instance_id,
        "type": change.type,
        "key": change.key,
        "op": change.op,
        "at": change.at.isoformat(),
    }
    return _encoded("change", facts, change.seq)


def _encoded(event: str, data: JSONObject, position: int | None) -> bytes:
    head = "" if position is None else f"id: {position}\n"
    return f"{head}event: {event}\ndata: {dump(data)}\n\n".encode()
