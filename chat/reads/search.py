"""Search over the conversations that a user is in: hits with the conversation that each opens in. Reads only."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from chat.instances.rows import key_of, path_of
from chat.members.selectors import scopes_shared_with
from chat.models import AgentInstance, Role
from sessions_app.search.query import ALL, MAX_SCOPES, Only, SearchHit, search


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
    user_id: int,
    query: str,
    *,
    instance_id: str | None = None,
    session_id: str | None = None,
    agent: str = "",
    project_id: str = "",
    only: Only = ALL,
    limit: int = 20,
    cursor: str = "",
) -> ConversationHits:
    """Search the conversations that a user is in, all or one. A fixed number of queries, or one more.

    A temporary conversation is searched where it is named, and nowhere else.
    Of those of others, and with `agent` or `project_id` of its own, the 500 that were active last. A project is its
    owner's: others' conversations are in none. Errors: `CursorInvalid`.
    """
    scopes = None if instance_id is None else [instance_id]
    of_others = AgentInstance.objects.filter(pk__in=scopes_shared_with(user_id, Role.READER))
    shared, is_cut = _active(of_others)
    mine = AgentInstance.objects.filter(Q(owner_id=user_id) | Q(pk__in=shared))
    if agent or project_id:
        of_agent = mine.filter(agent=agent) if agent else mine
        wanted = of_agent.filter(owner_id=user_id, project_id=project_id) if project_id else of_agent
        active, are_more = _active(wanted)
        is_cut = is_cut or are_more
        scopes = [scope for scope in active if scopes is None or scope in scopes]
    is_own_place = instance_id is not None and mine.filter(pk=instance_id, is_temporary=True).exists()
    page = search(
        query,
        session_id=session_id,
        scopes=scopes,
        owner_id=user_id,
        shared=shared,
        only=only,
        with_hidden=is_own_place,
        limit=limit,
        cursor=cursor,
    )
    rows = mine.in_bulk([hit.scope for hit in page.hits])
    return ConversationHits(
        items=[ConversationHit(hit=hit, instance=rows.get(hit.scope)) for hit in page.hits],
        next_cursor=page.next_cursor,
        is_partial=page.is_partial or is_cut,
        problem=page.problem,
    )


def _active(instances: QuerySet[AgentInstance]) -> tuple[list[str], bool]:
    """Ids of those that were active last, and whether there are more."""
    found = list(instances.order_by("-active_at", "id").values_list("id", flat=True)[: MAX_SCOPES + 1])
    return found[:MAX_SCOPES], len(found) > MAX_SCOPES
