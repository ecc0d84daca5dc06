"""API operations on the caller's memory, shared by all conversations and agents."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import StringConstraints

from chat.http.api.authentication import caller_of
from chat.http.api.endpoints.context import Word, change_page, entry_page, to_entry
from chat.http.api.schemas.context import BlockIn, ChangePageOut, EntryIn, EntryPageOut, MemoryOut
from sessions_app.context import store
from sessions_app.context.history import ContextActor, ContextOwner
from sessions_app.core.compaction.tokens import estimate_text
from sessions_app.core.context.context_blocks import check_key, check_label

router = Router(tags=["memory"])
Limit = Annotated[int, Query(ge=1, le=200)]
Few = Annotated[int, Query(ge=1, le=50)]
Label = Annotated[str, StringConstraints(max_length=64)]


@router.get("/memory", response=list[MemoryOut], operation_id="list_memory")
def memory_list(request: HttpRequest) -> list[MemoryOut]:
    """Everything that is remembered about you."""
    owner = _holder(request)
    texts, counts = store.read_texts(owner), store.entry_totals(owner)
    return [_memory(label, texts.get(label), counts.get(label, 0)) for label in sorted({*texts, *counts})]


@router.put("/memory/{label}", response=MemoryOut, operation_id="write_memory")
def memory_write(request: HttpRequest, label: str, data: BlockIn) -> MemoryOut:
    """Replace a memory text. The next turn of each conversation reads it."""
    owner = _holder(request)
    store.write_text(owner, label, lambda _held: data.content, by=_by(request))
    return _memory(label, store.read_texts(owner, [label]).get(label), store.entry_totals(owner).get(label, 0))


@router.delete("/memory/{label}", response={204: None}, operation_id="forget_memory")
def memory_forget(request: HttpRequest, label: str, history: bool = False) -> object:
    """Clear a memory text and its entries; `history` also erases the earlier texts from the list of changes."""
    store.forget(_holder(request), check_label(label), erases_history=history, by=_by(request))
    return Status(204, None)


@router.get("/memory/{label}/entries", response=EntryPageOut, operation_id="list_memory_entries")
def memory_entries(request: HttpRequest, label: str, after: Word = "", limit: Few = 50) -> EntryPageOut:
    """Entries that are remembered under a label, by their keys."""
    owner = _holder(request)
    return entry_page(store.list_entries(owner, check_label(label), after_key=after, limit=limit + 1), limit)


@router.put("/memory/{label}/entries/{key}", response={204: None}, operation_id="write_memory_entry")
def memory_entry_write(request: HttpRequest, label: str, key: str, data: EntryIn) -> object:
    """Store an entry, new or again."""
    store.put_entry(_holder(request), label, to_entry(key, data), by=_by(request))
    return Status(204, None)


@router.delete("/memory/{label}/entries/{key}", response={204: None}, operation_id="delete_memory_entry")
def memory_entry_delete(request: HttpRequest, label: str, key: str) -> object:
    """Forget an entry."""
    store.delete_entry(_holder(request), check_label(label), check_key(key), by=_by(request))
    return Status(204, None)


@router.get("/memory-changes", response=ChangePageOut, operation_id="list_memory_changes")
def memory_changes(
    request: HttpRequest, subject: Word = "", before: int | None = None, limit: Limit = 50
) -> ChangePageOut:
    """Changes of your memory, newest first; filtered by `subject`, for example `block:memory`."""
    return change_page(_holder(request), subject, before, limit)


def _holder(request: HttpRequest) -> ContextOwner:
    return ContextOwner(owner_id=caller_of(request).user.pk)


def _by(request: HttpRequest) -> ContextActor:
    return ContextActor(via="api", user_id=caller_of(request).user.pk)


def _memory(label: str, text: store.StoredBlock | None, entry_count: int) -> MemoryOut:
    content = text.content if text else ""
    return MemoryOut(
        label=label,
        description=text.description if text else "",
        content=content,
        tokens=estimate_text(content),
        max_tokens=text.max_tokens if text else None,
        entry_count=entry_count,
    )
