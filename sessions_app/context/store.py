"""The stored part of a context: texts and entries of a session or of a user, read and written.

Every write is one transaction that locks what it changes, checks the limits there, and adds a row to the history. What
a model or code writes shows in a kept prompt after a refresh; what a person changes or deletes takes effect at once,
so the kept prompts that may hold it are forgotten.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, Final

from django.db import transaction
from django.db.models import Count, Q

from sessions_app.context.history import (
    CODE,
    ContextActor,
    ContextOwner,
    block_subject,
    entry_subject,
    erase_texts,
    note_change,
    note_deleted_entries,
)
from sessions_app.core.compaction.tokens import TokenCounter, estimate_text
from sessions_app.core.context.context_blocks import Entry, check_content, check_key, check_label, check_text
from sessions_app.errors import BlockExists, BlockNotFound, BlockTooLarge, EntryNotFound, SessionNotFound
from sessions_app.messages.writer import writing
from sessions_app.models import ContextBlock, ContextEntry, Session
from sessions_app.search.indexing import index_entries
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.statements import Columns, Statement

MAX_BLOCKS: Final = 200  # of one session, and of one user
MAX_ENTRIES: Final = 10_000
MAX_HEADS: Final = 1_000  # of the entries that prompts list
MAX_WORDS: Final = 500  # characters of a description
MAX_TITLE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlock:
    """A stored text, read."""

    label: str
    content: str
    description: str
    max_tokens: int | None
    is_runtime: bool
    is_removed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRows:
    """Stored data of a session's context: owner, loaded documents, kept prompt, own texts, and what it has cost.

    `owner_texts`: the texts of the labels of its owner's that were asked for.
    """

    owner_id: int | None
    scope: str
    loaded: frozenset[str]
    system_prompt: str | None
    cost: Decimal
    max_cost: Decimal | None
    is_hidden: bool
    texts: dict[str, StoredBlock]
    owner_texts: dict[str, StoredBlock]


_TEXT: Final = ("label", "content", "description", "max_tokens", "is_runtime", "is_removed")
_SESSION: Final = Columns(
    Session, ("owner_id", "scope", "system_prompt", "loaded_keys", "cost", "max_cost", "hidden_at"), prefix="s"
)
_BLOCK: Final = Columns(ContextBlock, ("id", "session_id", *_TEXT), prefix="b")


@cache
def _read_session(label_count: int) -> Statement:
    """The statement that reads a session with so many of its owner's texts."""
    labels = ", ".join(["%s"] * label_count)
    return Statement(
        """
        SELECT :session:, :block: FROM think_sessions_session s
        LEFT JOIN think_sessions_contextblock b ON b.session_id = s.id :or_of_owner: WHERE s.id = %s ORDER BY b.id
        """,
        session=_SESSION,
        block=_BLOCK,
        or_of_owner=f"OR (b.owner_id = s.owner_id AND b.label IN ({labels}))" if labels else "",
    )


def read_session(session_id: str, owner_labels: Sequence[str] = ()) -> SessionRows:
    """Read a session's stored context, blocks in the order of their addition, and these texts of its owner's.

    One query. Errors: `SessionNotFound`.
    """
    rows = _read_session(len(owner_labels)).all(*owner_labels, session_id)
    if not rows:
        raise SessionNotFound(Phrase("There is no session {id!r}.", id=session_id))
    session = _SESSION.build(rows[0])
    blocks = [_BLOCK.build(row[len(_SESSION) :]) for row in rows if row[len(_SESSION)] is not None]
    own, of_owner = (
        [block for block in blocks if (block.session_id is None) is is_other] for is_other in (False, True)
    )
    return SessionRows(
        owner_id=session.owner_id,
        scope=session.scope,
        loaded=frozenset(session.loaded_keys or ()),
        system_prompt=session.system_prompt,
        cost=session.cost,
        max_cost=session.max_cost,
        is_hidden=session.hidden_at is not None,
        texts=_by_label(own),
        owner_texts=_by_label(of_owner),
    )


def _by_label(blocks: Iterable[ContextBlock]) -> dict[str, StoredBlock]:
    return {block.label: _stored([getattr(block, name) for name in _TEXT]) for block in blocks}


def read_texts(owner: ContextOwner, labels: Sequence[str] | None = None) -> dict[str, StoredBlock]:
    """Read an owner's texts, optionally of some labels only. One query."""
    rows = ContextBlock.objects.filter(**owner.row)
    if labels is not None:
        rows = rows.filter(label__in=labels)
    return {values[0]: _stored(values) for values in rows.order_by("label").values_list(*_TEXT)}


def _stored(values: Sequence[Any]) -> StoredBlock:
    return StoredBlock(**dict(zip(_TEXT, values, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A block's declared limits, stored with its text so that edits by people obey them too."""

    description: str = ""
    max_tokens: int | None = None
    counter: TokenCounter = estimate_text


def write_text(
    owner: ContextOwner,
    label: str,
    change: Callable[[str], str],
    *,
    action: str = "set",
    shape: Shape | None = None,
    by: ContextActor = CODE,
) -> str:
    """Change a text under a lock; returns the stored text. Without a shape the stored limit applies.

    Errors: `BlockTooLarge`, `ContextInvalid`, `SessionNotFound`; then nothing is changed.
    """
    check_label(label)
    with _holding(owner):
        row = _text_row(owner, label) or _new_text(owner, label)
        before, after = row.content, change(row.content)
        limits = shape or Shape(max_tokens=row.max_tokens)
        check_content(label, after, limits.max_tokens, limits.counter, held=before)
        row.content = after
        if shape is not None:
            row.description, row.max_tokens = shape.description[:MAX_WORDS], shape.max_tokens
        row.save()
        if after != before:
            note_change(owner, block_subject(label), action, before=before, after=after, by=by)
            _show(owner, by)
        return after


def forget(owner: ContextOwner, label: str, *, erases_history: bool = False, by: ContextActor = CODE) -> None:
    """Clear a block: its text and entries; `erases_history` also removes its earlier texts from the history.

    Errors: `BlockNotFound` where there is nothing to forget.
    """
    with _holding(owner):
        row = _text_row(owner, label)
        rows = ContextEntry.objects.filter(**owner.row, label=label)
        entries = list(rows.values_list("key", "content"))
        if row is None and not entries:
            raise BlockNotFound(Phrase("There is nothing stored in a block {label!r} here.", label=label))
        if row is not None:
            note_change(owner, block_subject(label), "delete", before=row.content, by=by)
            if row.is_removed or row.is_runtime:
                ContextBlock.objects.filter(pk=row.pk).update(content="")  # that it was added or taken out stays so
            else:
                row.delete()
        rows.delete()
        note_deleted_entries(owner, label, entries, by=by)
        if erases_history:
            erase_texts(owner, label)
        _show(owner, by)


def add_block(session_id: str, label: str, shape: Shape) -> None:
    """Add a block during a turn. A removed block is restored with its content.

    Errors: `BlockExists`, `SessionNotFound`.
    """
    owner = ContextOwner(session_id=session_id)
    with _holding(owner):
        row = _text_row(owner, check_label(label))
        if row is not None and not row.is_removed:
            raise BlockExists(Phrase("There is a context block {label!r} already.", label=label))
        row = row or _new_text(owner, label)
        row.is_runtime, row.is_removed = True, False
        row.description, row.max_tokens = shape.description[:MAX_WORDS], shape.max_tokens
        row.save()
        note_change(owner, block_subject(label), "add", after=row.content, by=CODE)


def remove_block(session_id: str, label: str) -> None:
    """Remove a block from a session. Its content stays stored; its documents are unloaded."""
    owner = ContextOwner(session_id=session_id)
    with _holding(owner):
        row = _text_row(owner, label) or _new_text(owner, label)
        row.is_removed = True
        row.save()
        sessions = Session.objects.filter(pk=session_id)
        loaded = sessions.values_list("loaded_keys", flat=True).get()
        sessions.update(loaded_keys=[name for name in loaded if not name.startswith(f"{label}:")])
        note_change(owner, block_subject(label), "remove", before=row.content, by=CODE)


def put_entry(
    owner: ContextOwner, label: str, entry: Entry, *, shape: Shape | None = None, by: ContextActor = CODE
) -> None:
    """Store an entry under its key, new or again. Errors: `BlockTooLarge`, `ContextInvalid`, `SessionNotFound`."""
    check_label(label)
    check_key(entry.key)
    limits = shape or Shape()
    check_content(label, entry.content, limits.max_tokens, limits.counter)
    title = check_text("A title", entry.title)[:MAX_TITLE]
    description = check_text("A description", entry.description)[:MAX_WORDS]
    with _holding(owner):
        row = _entry_row(owner, label, entry.key)
        before = row.content
        row.content, row.title, row.description = entry.content, title or row.title, description or row.description
        row.save()
        index_entries([row])
        note_change(owner, entry_subject(label, entry.key), "set", before=before, after=entry.content, by=by)
        _show(owner, by)


def delete_entry(owner: ContextOwner, label: str, key: str, *, by: ContextActor = CODE) -> None:
    """Forget an entry. Errors: `EntryNotFound`."""
    with _holding(owner):
        row = ContextEntry.objects.filter(**owner.row, label=label, key=key).first()
        if row is None:
            raise EntryNotFound(Phrase("There is no entry {key!r} in {label!r}.", key=key, label=label))
        row.delete()
        note_change(owner, entry_subject(label, key), "delete", before=row.content, by=by)
        _show(owner, by)


def find_entry(owner: ContextOwner, label: str, key: str) -> Entry | None:
    """Read an entry, or nothing."""
    return next(iter(_entries(ContextEntry.objects.filter(**owner.row, label=label, key=key))), None)


def list_entries(owner: ContextOwner, label: str, *, after_key: str = "", limit: int = 100) -> list[Entry]:
    """Entries of a block by their keys, those after a key. One query."""
    rows = ContextEntry.objects.filter(**owner.row, label=label, key__gt=after_key)
    return _entries(rows.order_by("key")[:limit])


def entry_heads(holders: dict[str, ContextOwner]) -> dict[str, list[Entry]]:
    """Keys and descriptions of the entries of several blocks, without their content. One query.

    Shape: `holders` says for each label whose entries are meant.
    """
    found: dict[str, list[Entry]] = {label: [] for label in holders}
    if not holders:
        return found
    wanted = Q()
    for label, owner in holders.items():
        wanted |= Q(**owner.row, label=label)
    rows = ContextEntry.objects.filter(wanted).order_by("label", "key")
    for label, key, title, description in rows.values_list("label", "key", "title", "description")[:MAX_HEADS]:
        found[label].append(Entry(key=key, content="", title=title, description=description))
    return found


def entry_counts(holders: dict[str, ContextOwner]) -> dict[str, int]:
    """Number of entries of several blocks. One query."""
    if not holders:
        return {}
    wanted = Q()
    for label, owner in holders.items():
        wanted |= Q(**owner.row, label=label)
    counted = ContextEntry.objects.filter(wanted).values_list("label").annotate(n=Count("pk")).order_by()
    return dict(counted)


def entry_totals(owner: ContextOwner) -> dict[str, int]:
    """Number of an owner's entries by label. One query."""
    rows = ContextEntry.objects.filter(**owner.row).values_list("label")
    return dict(rows.annotate(n=Count("pk")).order_by("label"))


def _entries(rows: Any) -> list[Entry]:
    columns = ("key", "content", "title", "description")
    return [Entry(**dict(zip(columns, values, strict=True))) for values in rows.values_list(*columns)]


def note_loaded(session_id: str, name: str) -> None:
    """Remember that a document is loaded (`label:key`). Safe to repeat. Errors: `SessionNotFound`."""
    with writing(session_id) as writer:
        sessions = Session.objects.filter(pk=session_id)
        loaded = sessions.values_list("loaded_keys", flat=True).get()
        if name not in loaded:
            sessions.update(loaded_keys=[*loaded, name])
            writer.changed = True


def note_unloaded(session_id: str, name: str) -> bool:
    """Forget that a document is loaded; false when it was not. Errors: `SessionNotFound`."""
    with writing(session_id) as writer:
        sessions = Session.objects.filter(pk=session_id)
        loaded = sessions.values_list("loaded_keys", flat=True).get()
        writer.changed = name in loaded
        if writer.changed:
            sessions.update(loaded_keys=[each for each in loaded if each != name])
        return writer.changed


def forget_prompt(owner: ContextOwner) -> None:
    """Drop the kept prompts that a owner's blocks are in; the next turn of each session renders anew."""
    mine: dict[str, Any] = {"pk": owner.session_id} if owner.session_id else {"owner_id": owner.owner_id}
    with transaction.atomic():
        rows = Session.objects.filter(system_prompt__isnull=False, **mine)
        # In one order everywhere: two that do this at once must not wait for each other.
        list(rows.order_by("pk").select_for_update().values_list("pk"))
        rows.update(system_prompt=None)


def _show(owner: ContextOwner, by: ContextActor) -> None:
    if by.is_person:
        forget_prompt(owner)


@contextmanager
def _holding(owner: ContextOwner) -> Iterator[None]:
    """One transaction in which no other write of the same owner runs. Errors: `SessionNotFound`."""
    if owner.session_id is None:
        with transaction.atomic():
            yield
        return
    with writing(owner.session_id) as writer:
        writer.changed = True
        yield


def _text_row(owner: ContextOwner, label: str) -> ContextBlock | None:
    return ContextBlock.objects.filter(**owner.row, label=label).select_for_update().first()


def _new_text(owner: ContextOwner, label: str) -> ContextBlock:
    """Create the row and lock it; if another process created it meanwhile, lock that one."""
    rows = ContextBlock.objects.filter(**owner.row)
    if rows.count() >= MAX_BLOCKS:
        raise BlockTooLarge(Phrase("There are at most {limit} blocks in one place.", limit=MAX_BLOCKS))
    rows.get_or_create(label=label, defaults=owner.row)
    return rows.select_for_update().get(label=label)


def _entry_row(owner: ContextOwner, label: str, key: str) -> ContextEntry:
    """The row of an entry, made if need be, and locked."""
    rows = ContextEntry.objects.filter(**owner.row, label=label)
    row = rows.filter(key=key).select_for_update().first()
    if row is not None:
        return row
    if rows.count() >= MAX_ENTRIES:
        raise BlockTooLarge(Phrase("Block {label!r} holds at most {limit} entries.", label=label, limit=MAX_ENTRIES))
    rows.get_or_create(key=key, defaults={**owner.row, "label": label})
    return rows.select_for_update().get(key=key)
