"""Maintains the search index; its only writer.

`messages/writer.py` calls `index_messages` in the transaction of what it wrote. What writes context entries calls
`index_entries`. Rows that are deleted take their words along by themselves.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from django.db import connection, models, transaction

from sessions_app.core.messages.messages import MessageRole
from sessions_app.core.search.words import indexed_words, text_of
from sessions_app.models import ContextEntry, EntryWords, IndexedText, Message, MessageWords
from thinkproject.kernel.statements import Statement

SEARCHED_ROLES: Final = (MessageRole.USER, MessageRole.ASSISTANT)
BATCH: Final = 500


def tag(kind: str, value: object) -> str:
    """Mark of whatever a row belongs to. A hash, as values may be of any characters; hits are checked by their rows."""
    return "@" + blake2b(f"{kind}:{value}".encode(errors="replace"), digest_size=10).hexdigest()


def message_tags(session_id: str, owner_id: object, scope: str) -> str:
    """Marks of a message: its session, and as far as there are, owner and scope."""
    marks = [tag("session", session_id)]
    if owner_id is not None:
        marks.append(tag("owner", owner_id))
    if scope:
        marks.append(tag("scope", scope))
    return " ".join(marks)


def block_tag(*, label: str, session_id: str | None, owner_id: object) -> str:
    """Mark of the entries of one block."""
    return tag(f"block of {'owner' if session_id is None else 'session'} {owner_id or session_id}", label)


def index_messages(rows: Iterable[Message], tags: str) -> None:
    """Put messages of one session into the index, new or again. One query, one more where a text is gone.

    Only placed messages of people and assistants, and of them only the texts. The caller's transaction.
    """
    kept = {row.pk: row for row in rows if row.placed_at is not None and row.role in SEARCHED_ROLES}
    _put(MessageWords, [(row_id, text_of(row.content["parts"]), tags) for row_id, row in kept.items()])


def index_entries(entries: Iterable[ContextEntry]) -> None:
    """Put context entries into the index, new or again: key, title, description and content."""
    _put(EntryWords, [(entry.pk, _entry_text(entry), _entry_tag(entry)) for entry in entries])


def fill_messages(
    messages: models.Manager[Message], *, after: int = 0, anew: bool = False
) -> Iterator[tuple[int, int]]:
    """Index missing messages in batches; `anew`: all. Returns the last id and the number indexed.

    Each batch is a transaction of its own, so it may be stopped at any time and begun again; `after` skips what is
    done. Messages that other processes write meanwhile are indexed by them.
    """
    while True:
        ids = list(messages.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:BATCH])
        if not ids:
            return
        yield ids[-1], _fill(messages, ids, anew)
        after = ids[-1]


def fill_entries() -> Iterator[tuple[int, int]]:
    """Index all context entries again, batch by batch."""
    after = 0
    while entries := list(ContextEntry.objects.filter(pk__gt=after).order_by("pk")[:BATCH]):
        after = entries[-1].pk
        index_entries(entries)
        yield after, len(entries)


@transaction.atomic
def _fill(messages: models.Manager[Message], ids: Sequence[int], anew: bool) -> int:
    known = set() if anew else set(MessageWords.objects.filter(pk__in=ids).values_list("pk", flat=True))
    rows = messages.filter(pk__in=set(ids) - known, role__in=SEARCHED_ROLES, placed_at__isnull=False)
    if connection.features.has_select_for_update_skip_locked:
        rows = rows.select_for_update(skip_locked=True, of=("self",))
    columns = ("pk", "content", "session_id", "session__owner_id", "session__scope")
    texts = [
        (row_id, text_of(content["parts"]), message_tags(session_id or "", owner_id, scope or ""))
        for row_id, content, session_id, owner_id, scope in rows.values_list(*columns)
    ]
    _put(MessageWords, texts)
    return len(texts)


def _put(model: type[IndexedText], texts: Iterable[tuple[int, str, str]]) -> None:
    rows = [(row_id, indexed_words(text), tags) for row_id, text, tags in texts]
    empty = [row_id for row_id, words, _ in rows if not words]
    if empty:
        manager: models.Manager[IndexedText] = model._default_manager
        manager.filter(pk__in=empty).delete()
    kept = [row for row in rows if row[1]]
    for start in range(0, len(kept), BATCH):
        batch = kept[start : start + BATCH]
        _put_statement(model._meta.db_table, len(batch)).run(*(value for row in batch for value in row))


@lru_cache(maxsize=16)
def _put_statement(table: str, count: int) -> Statement:
    rows = ", ".join(["(%s, %s, %s)"] * count)
    return Statement(
        f'INSERT INTO "{table}" (id, words, tags) VALUES {rows}'  # noqa: S608 - a table of this app
        " ON CONFLICT (id) DO UPDATE SET words = EXCLUDED.words, tags = EXCLUDED.tags"
    )


def _entry_text(entry: ContextEntry) -> str:
    return f"{entry.key}\n{entry.title}\n{entry.description}\n{entry.content}"


def _entry_tag(entry: ContextEntry) -> str:
    return block_tag(label=entry.label, session_id=entry.session_id, owner_id=entry.owner_id)
