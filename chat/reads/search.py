"""Search over a user's conversations: hits with the conversation that each opens in. Reads only."""

from dataclasses import dataclass

from chat.instances.rows import key_of, path_of
from chat.models import AgentInstance
from sessions_app.search.query import MAX_SCOPES, SearchHit, search


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationHit:
    """A hit and its conversation. There is none where a session was made without an agent."""

    hit: SearchHit
    instance: AgentInstance | None

    @property
    def path(self) -> str | None:
        """The encoded URL path after `/agents/`."""
        return None if self.instance is None else path_of(key_of(self.instance))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationHits:
    """A page of hits, best first. `is_partial`: not everything that matched was ranked. `problem`: why nothing was."""

    items: list[ConversationHit]
    next_cursor: str | None
    is_partial: bool
    problem: str

    @property
    def has_more(self) -> bool:
        """Whether there is another page."""
        return self.next_cursor is not None


def search_conversations(  # noqa: PLR0913 - each narrows the search, and callers name it
    owner_id: int,
    query: str,
    *,
    instance_id: str | None = None,
    session_id: str | None = None,
    agent: str = "",
    limit: int = 20,
    cursor: str = "",
) -> ConversationHits:
    """Search a user's conversations, all or one. A fixed number of queries.

    With `agent` the 500 conversations of it that were active last. Errors: `CursorInvalid`.
    """
    scopes, is_cut = None if instance_id is None else [instance_id], False
    if agent:
        named = AgentInstance.objects.filter(owner_id=owner_id, agent=agent).order_by("-active_at", "id")
        active = list(named.values_list("id", flat=True)[: MAX_SCOPES + 1])
        is_cut = len(active) > MAX_SCOPES
        scopes = [scope for scope in active[:MAX_SCOPES] if scopes is None or scope in scopes]
    page = search(query, session_id=session_id, scopes=scopes, owner_id=owner_id, limit=limit, cursor=cursor)
    rows = AgentInstance.objects.filter(owner_id=owner_id).in_bulk([hit.scope for hit in page.hits])
    return ConversationHits(
        items=[ConversationHit(hit=hit, instance=rows.get(hit.scope)) for hit in page.hits],
        next_cursor=page.next_cursor,
        is_partial=page.is_partial or is_cut,
        problem=page.problem,
    )
