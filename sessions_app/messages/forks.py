"""Data copied to a fork besides messages: compactions of the shared path, and memory."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from django.db import models

from sessions_app.models import Compaction, ContextBlock, ContextEntry, Message, new_compaction_id
from sessions_app.search.indexing import index_entries

MAX_COMPACTIONS: Final = 500
"""Of the newest ones. Each covers more than those before it, so what lies further back says nothing any more."""

REACH: Final = 5_000
MAX_STRETCHES: Final = 20
"""How many messages are looked through at once, and how often above a compaction that reaches further up."""

Row = TypeVar("Row", bound=models.Model)


def take_along(origin_id: str, fork_id: str, fork_point: Message) -> None:
    """Copy a fork's data, inside the transaction that creates it. The origin's rows are not changed."""
    copy_rows(_shared_compactions(origin_id, fork_point), id=new_compaction_id, session_id=fork_id)
    for model in (ContextBlock, ContextEntry):
        copy_rows(model._default_manager.filter(session_id=origin_id).order_by("pk"), id=None, session_id=fork_id)
    index_entries(ContextEntry.objects.filter(session_id=fork_id))


def insert_as_they_were(rows: Sequence[Row], *stamps: str) -> None:
    """Insert rows and keep the instants that inserting would set to now. Two statements for each batch."""
    if not rows:
        return
    model = type(rows[0])
    kept = [{stamp: getattr(row, stamp) for stamp in stamps} for row in rows]
    model._default_manager.bulk_create(rows)
    for row, instants in zip(rows, kept, strict=True):
        for stamp, instant in instants.items():
            setattr(row, stamp, instant)
    if stamps:
        model._default_manager.bulk_update(rows, stamps)


def copy_rows(rows: Any, **changed: Any) -> None:
    """Store copies of rows with some columns changed; a function makes a value for each of them."""
    copies = []
    for row in rows:
        values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
        values |= {name: value() if callable(value) else value for name, value in changed.items()}
        copies.append(type(row)(**values))
    instants = ("created_at",) if copies and hasattr(copies[0], "created_at") else ("updated_at",)
    insert_as_they_were(copies, *instants)


def _shared_compactions(origin_id: str, fork_point: Message) -> list[Compaction]:
    """Compactions that apply to the path of the fork point, oldest first: those ending in its last messages.

    Where one of them reaches further up, the search goes on above it, as reading does; what it covers up there is left
    out, since it stands for that already. So this costs what is read of the path and not its length.
    """
    newest = Compaction.objects.filter(session_id=origin_id, undone_at=None).order_by("-created_at", "-id")
    ending: dict[str, list[Compaction]] = {}
    for row in newest[:MAX_COMPACTIONS]:
        ending.setdefault(row.last_id, []).append(row)
    found: list[Compaction] = []
    place: tuple[int, int] | None = (fork_point.pk, fork_point.depth)
    for _ in range(MAX_STRETCHES):
        if place is None or not ending:
            break
        row_id, depth = place
        stretch = Message.objects.on_path(origin_id, row_id, depth - REACH)
        here = set(stretch.values_list("message_id", flat=True))
        ended = [row for last_id in here & ending.keys() for row in ending.pop(last_id)]
        found += ended
        place = _above(origin_id, [row.first_id for row in ended if row.first_id not in here], depth)
    return sorted(found, key=lambda row: (row.created_at, row.pk))


def _above(origin_id: str, first_ids: list[str], depth: int) -> tuple[int, int] | None:
    """The row above the highest of some messages, and its depth; nothing above a root, or where none is there."""
    if not first_ids:
        return None
    rows = Message.objects.named(origin_id, first_ids).filter(placed_at__isnull=False, depth__lt=depth)
    highest = rows.order_by("depth").values_list("parent_id", "depth").first()
    return None if highest is None or highest[0] is None else (highest[0], highest[1] - 1)
