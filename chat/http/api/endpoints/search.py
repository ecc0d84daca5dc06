"""The API's search over the conversations that one is in."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import StringConstraints

from chat.access.auth import open_instance, open_session
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.models import Role
from chat.reads.search import ConversationHit, search_conversations
from sessions_app.core.messages.shortening import text_length
from sessions_app.search.query import Only

router = Router(tags=["search"])
Limit = Annotated[int, Query(ge=1, le=100)]
Text = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]
Typed = Annotated[str, StringConstraints(max_length=5_000)]


class SearchHitOut(Schema):
    """A message that matches.

    `highlights`: ranges of the snippet, in UTF-16 units as browsers count. `is_on_path`: null where that would cost too
    much to say. Open it with `around` of `list_session_messages`.
    """

    message_id: str
    session_id: str
    role: str
    created_at: datetime
    snippet: str
    highlights: list[tuple[int, int]]
    is_on_path: bool | None
    leaf_id: str | None
    is_current_session: bool
    instance_id: str | None
    agent: str | None
    title: str | None
    path: str | None


class SearchPageOut(Schema):
    """Hits, best first. `is_partial`: only the newest matches were ranked. `problem`: why nothing was looked for."""

    items: list[SearchHitOut]
    has_more: bool
    next_cursor: str | None
    is_partial: bool
    problem: str


@router.get("/search", response=SearchPageOut, operation_id="search_messages", openapi_extra=declares(404))
def message_search(  # noqa: PLR0913 - the framework takes one argument for each parameter
    request: HttpRequest,
    q: Typed = "",
    *,
    instance: Text = "",
    session: Text = "",
    agent: Text = "",
    project: Text = "",
    role: Literal["", "user", "assistant"] = "",
    since: datetime | None = None,
    until: datetime | None = None,
    limit: Limit = 20,
    cursor: Text = "",
) -> SearchPageOut:
    """Search all conversations that you are in, or one: words, "a phrase", -without, OR.

    `agent`, `project` (the id of one of yours), `role` (who wrote), `since` and `until` (when it was written; UTC where
    no zone is named) narrow it. A query that cannot be understood finds nothing and says why.
    """
    user = caller_of(request).user
    instance_id = open_instance(user, instance, needs=Role.READER).pk if instance else None
    if session:
        open_session(user, session, needs=Role.READER)
    found = search_conversations(
        user.pk,
        q,
        instance_id=instance_id,
        session_id=session or None,
        agent=agent,
        project_id=project,
        only=Only(role=role, since=_instant(since), until=_instant(until)),
        limit=limit,
        cursor=cursor,
    )
    return SearchPageOut.model_construct(
        items=[_encode(item) for item in found.items],
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        is_partial=found.is_partial,
        problem=found.problem,
    )


def _instant(given: datetime | None) -> datetime | None:
    return given.replace(tzinfo=UTC) if given is not None and given.tzinfo is None else given


def _encode(item: ConversationHit) -> SearchHitOut:
    hit, instance = item.hit, item.instance
    return SearchHitOut.model_construct(
        message_id=hit.message_id,
        session_id=hit.session_id,
        role=hit.role,
        created_at=hit.created_at,
        snippet=hit.snippet,
        highlights=[(text_length(hit.snippet[:low]), text_length(hit.snippet[:high])) for low, high in hit.highlights],
        is_on_path=hit.is_on_path,
        leaf_id=hit.leaf_id,
        is_current_session=instance is not None and instance.session_id == hit.session_id,
        instance_id=None if instance is None else instance.pk,
        agent=None if instance is None else instance.agent,
        title=None if instance is None else instance.title,
        path=item.path,
    )
