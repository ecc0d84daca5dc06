"""What a fork takes along besides its messages: compactions of the shared path, and what the session remembers."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from django.db import models

from sessions_app.models import Compaction, ContextBlock, ContextEntry, Message, new_compaction_id
from sessions_app.search.indexing import index_entries

MAX_COMPACTIONS: Final = 500
"""Of the newest ones. Each covers more than those before it, so what lies further back says nothing any more."""

Row = TypeVar("Row", bound=models.Model)


def take_along(origin_id: str, fork_id: str, fork_point: Message) -> None:
    """Copy what the fork goes on with, inside the transaction that makes it. The origin's rows are left alone."""
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
    """Compactions whose both ends lie on the path to the fork point, oldest first.

    Costs nothing where there are none, else the distance from the fork point to the end that lies furthest up.
    """
    newest = Compaction.objects.filter(session_id=origin_id, undone_at=None).order_by("-created_at", "-id")
    found = list(newest[:MAX_COMPACTIONS])
    if not found:
        return []
    ids = sorted({end for row in found for end in (row.first_id, row.last_id)})
    named = Message.objects.named(origin_id, ids).filter(depth__lte=fork_point.depth, placed_at__isnull=False)
    depths = dict(named.values_list("message_id", "depth"))
    held = [row for row in found if row.last_id in depths and depths.get(row.first_id, _BELOW) <= depths[row.last_id]]
    if not held:
        return []
    # The first end is above the last one, so where the last one lies on the path the first one does.
    climbed = Message.objects.on_path(origin_id, fork_point.pk, min(depths[row.last_id] for row in held))
    shared = set(climbed.filter(message_id__in={row.last_id for row in held}).values_list("message_id", flat=True))
    return [row for row in reversed(held) if row.last_id in shared]


_BELOW: Final = 2_000_000_000
