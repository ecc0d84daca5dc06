"""Messages of an import as rows: many at once, below parents that came before them.

The tree is the one that the export describes, so nothing is appended and no path moves; every other message goes in
through `messages/writer.py`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

from django.db import transaction

from sessions_app.core.messages import shapes
from sessions_app.core.messages.messages import to_content
from sessions_app.errors import MessageInvalid
from sessions_app.models import Message
from sessions_app.search.indexing import index_messages
from thinkproject.kernel.jsonvalue import byte_size
from thinkproject.kernel.phrases import Phrase

Placed: TypeAlias = tuple[Message, str | None]
"""A row and the id of the message that it hangs below; a root has none."""


def row_of(session_id: str, message: shapes.Message, *, created_at: datetime, placed_at: datetime) -> Message:
    """A row of a prepared message, without its place."""
    return Message(
        session_id=session_id,
        message_id=message["id"],
        role=message["role"],
        content=to_content(message),
        byte_size=byte_size(message),
        change_seq=1,
        created_at=created_at,
        placed_at=placed_at,
    )


def write(session_id: str, placed: Sequence[Placed], tags: str) -> None:
    """Store a batch; parents are in an earlier batch or earlier in this one. A fixed number of statements.

    `tags`: the marks of the search of what the session will be, as its scope is given to it at the end.

    **Errors:** `MessageInvalid` for an id that came before and for a parent that did not; then nothing is written.
    """
    if not placed:
        return
    wanted = {row.message_id for row, _ in placed} | {parent_id for _, parent_id in placed if parent_id is not None}
    known = Message.objects.filter(session_id=session_id, message_id__in=wanted).only("message_id", "depth")
    rows = {row.message_id: row for row in known}
    for row, parent_id in placed:
        if row.message_id in rows:
            raise MessageInvalid(Phrase("The message {id!r} comes twice.", id=row.message_id))
        if parent_id is not None and parent_id not in rows:
            raise MessageInvalid(
                Phrase(
                    "The parent {parent!r} of the message {id!r} does not come before it.",
                    parent=parent_id,
                    id=row.message_id,
                )
            )
        row.depth = 0 if parent_id is None else rows[parent_id].depth + 1
        rows[row.message_id] = row
    made, instants = [row for row, _ in placed], [row.created_at for row, _ in placed]
    with transaction.atomic():
        # First without parents, whose row ids are only known then; inserting also sets the instant to now.
        Message.objects.bulk_create(made)
        for (row, parent_id), created_at in zip(placed, instants, strict=True):
            row.parent = None if parent_id is None else rows[parent_id]
            row.created_at = created_at
        Message.objects.bulk_update(made, ["parent", "created_at"])
        index_messages(made, tags)
