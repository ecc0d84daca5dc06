"""Search memory and messages, and format the results for a model."""

from dataclasses import dataclass
from typing import Final

from sessions_app.context.history import ContextOwner
from sessions_app.core.context.context_blocks import NOTHING_FOUND, Entry, shortened
from sessions_app.core.search.words import text_of
from sessions_app.models import Message
from sessions_app.search.query import SearchHit, search, search_entries

SEPARATOR: Final = "\n\n---\n\n"
MESSAGE_CHARS: Final = 4000  # of one message, for a model


def find_entries(owner: ContextOwner, label: str, query: str, *, limit: int = 10) -> list[Entry] | str:
    """The entries of a block that fit a query, best first; or why nothing was looked for."""
    found = search_entries(query, label=label, session_id=owner.session_id, owner_id=owner.owner_id, limit=limit)
    if found.problem:
        return f"{NOTHING_FOUND} {found.problem}"
    return [
        Entry(key=row.key, content=row.content, title=row.title, description=row.description) for row in found.entries
    ]


@dataclass(frozen=True, slots=True)
class FoundMessages:
    """Messages as a text for a model. `session_ids`: of the sessions that they are in."""

    text: str
    session_ids: frozenset[str] = frozenset()


def find_messages(query: str, *, besides: str, owner_id: int | None, scope: str, limit: int = 10) -> FoundMessages:
    """Messages of all of an owner's sessions, or else of a scope's, less one session."""
    if owner_id is None and not scope:
        return FoundMessages(NOTHING_FOUND)
    # The question itself is in the session that asks: some more are taken, and its own are dropped.
    page = search(query, owner_id=owner_id, scopes=[scope] if owner_id is None else None, limit=4 * limit)
    if page.problem:
        return FoundMessages(f"{NOTHING_FOUND} {page.problem}")
    hits = [hit for hit in page.hits if hit.session_id != besides][:limit]
    texts = _texts(hits)
    found = (f"[{hit.role}] {texts.get((hit.session_id, hit.message_id), hit.snippet)}" for hit in hits)
    return FoundMessages(SEPARATOR.join(found) or NOTHING_FOUND, frozenset(hit.session_id for hit in hits))


def _texts(hits: list[SearchHit]) -> dict[tuple[str, str], str]:
    """Texts of messages owned by their session; for messages shared by a fork, the snippet."""
    rows = Message.objects.filter(
        session_id__in={hit.session_id for hit in hits}, message_id__in={hit.message_id for hit in hits}
    )
    found = rows.values_list("session_id", "message_id", "content")
    return {
        (session_id or "", message_id): shortened(text_of(content["parts"]), MESSAGE_CHARS)
        for session_id, message_id, content in found
    }
