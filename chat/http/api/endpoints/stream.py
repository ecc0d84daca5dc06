"""The API operation that streams a turn: async, because it is open as long as the turn runs."""

from typing import Annotated

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Header, Query, Router

from chat.access.auth import holds_role, open_turn
from chat.core.wire.ag_ui import AgUiEncoder
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.sse import (
    CONTENT_TYPE,
    HEADERS,
    LINES_TYPE,
    MAX_OFFSET,
    ag_ui_events,
    event_body,
    ndjson_lines,
    start_offset,
    turn_events,
    wants_ag_ui,
    wants_ndjson,
)
from chat.models import Role
from chat.reads.snapshots import is_final
from chat.reads.transcripts import turn_end
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject

router = Router(tags=["turns"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])
_DESCRIPTION = (
    "Server-sent events. Each has a chunk as JSON in `data` and its offset as `id`; reconnecting with `Last-Event-ID` "
    "(or `offset`) goes on there. Comments keep an idle stream open. The last event has the type `end`: "
    '`{"turn_id", "request_id", "outcome", "message_id", "error"}`. With `Accept: text/event-stream; profile=ag-ui` '
    "the events are those of AG-UI 1.0. With `Accept: application/x-ndjson` each line is a JSON object: "
    '`{"t":"text","d"}`, `{"t":"think","d"}` or `{"t":"tool","n","a"}`; empty lines keep an idle stream open.'
)


@router.get(
    "/turns/{turn_id}/stream",
    operation_id="stream_turn",
    summary="Stream a turn",
    description=_DESCRIPTION,
    openapi_extra={
        "responses": {200: {"description": "Events", "content": {"text/event-stream": {}, "application/x-ndjson": {}}}}
    },
)
async def turn_stream(
    request: HttpRequest,
    turn_id: str,
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET)] = 0,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
    accept: Annotated[str | None, Header(alias="Accept")] = None,
) -> StreamingHttpResponse:
    """Follow a turn from an offset until it is final."""
    caller = caller_of(request)
    turn = await db(open_turn, caller.user, turn_id, needs=Role.READER)

    async def is_over() -> bool:
        return await db(is_final, turn.id)

    async def still_allowed() -> bool:
        return await db(holds_role, caller.credential, turn.instance, Role.READER)

    async def describe_end() -> JSONObject:
        return await db(turn_end, turn.id)

    start = start_offset(last_event_id, offset)
    is_lines = wants_ndjson(accept or "")
    if is_lines:
        events = ndjson_lines(turn.id, offset=start, is_over=is_over)
    elif wants_ag_ui(accept or ""):
        encoder = AgUiEncoder(thread_id=turn.instance_id, run_id=turn.id)
        events = ag_ui_events(turn.id, encoder, offset=start, is_over=is_over, describe_end=describe_end)
    else:
        events = turn_events(turn.id, offset=start, is_over=is_over, describe_end=describe_end)
    member_id = None if turn.instance.owner_id == caller.user.pk else caller.user.pk
    body = event_body(events, still_allowed=still_allowed, member_id=member_id, is_lines=is_lines)
    return StreamingHttpResponse(body, content_type=LINES_TYPE if is_lines else CONTENT_TYPE, headers=HEADERS)
