"""A stored session in the neutral shape of archives, so that it can be written as another product writes its own.

The way back of `reading.py`. Every branch and the chosen leaf are in it. Parts that other products have no place for
are counted as left out: data for pages, sources, hidden texts. Summaries, compactions and blocks are not looked at.
"""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Final

from sessions_app.core.messages.parts import is_tool
from sessions_app.core.messages.shapes import Part
from sessions_app.errors import SessionNotFound
from sessions_app.models import Session
from sessions_app.transfer.archives.shapes import ArchivedMessage, Content, Conversation, FileRef, LeftOut, Product
from sessions_app.transfer.archives.values import HIDDEN_PART, object_of, text_of, text_part
from sessions_app.transfer.export import message_rows
from thinkproject.kernel.phrases import Phrase

PLACEHOLDER: Final = "[…]"
_SILENT: Final = frozenset({"step-start"})


def stored_conversation(
    session_id: str, product: Product, *, source_id: str, title: str, file_of: Callable[[Part], FileRef | None]
) -> Conversation:
    """The messages of a session, parents first. `file_of`: a file with its bytes, nothing where it cannot be had.

    Errors: `SessionNotFound`. What is queued hangs below the leaf, where its turn will put it.
    """
    fields = ("name", "active_leaf__message_id", "created_at")
    head = Session.objects.filter(pk=session_id).values_list(*fields).first()
    if head is None:
        raise SessionNotFound(Phrase("There is no session {id!r}.", id=session_id))
    name, leaf_id, created_at = head
    left_out: Counter[str] = Counter()
    messages: list[ArchivedMessage] = []
    for row in message_rows(session_id):
        is_queued = row.placed_at is None
        parts = [kept for part in row.content["parts"] if (kept := _kept(part, file_of, left_out)) is not None]
        messages.append(
            ArchivedMessage(
                id=row.message_id,
                parent_id=leaf_id if is_queued else row.parent_id,
                role=row.role,
                parts=parts or [text_part(PLACEHOLDER)],  # a message without content is none to an importer
                created_at=row.created_at,
                metadata=object_of(row.content.get("metadata")),
            )
        )
        leaf_id = row.message_id if is_queued else leaf_id
    return Conversation(
        product=product,
        id=source_id,
        title=title or name,
        messages=messages,
        leaf_id=leaf_id or (messages[-1].id if messages else ""),
        created_at=created_at,
        updated_at=max((each.created_at for each in messages if each.created_at), default=created_at),
        left_out=left_out,
    )


def model_of(message: ArchivedMessage) -> str:
    """The model that wrote a message, where that is known."""
    return text_of(message.metadata.get("model"))


def seconds_of(instant: datetime | None) -> int:
    """Whole seconds since 1970; 0 for nothing."""
    return 0 if instant is None else int(instant.timestamp())


def result_of(part: Part) -> object:
    """The result of a call that has one, an error or a denial as its text; `None` for a call that waits."""
    if part.get("errorText"):
        return part["errorText"]
    approval = part.get("approval", {})
    if approval.get("approved") is False:
        return approval.get("reason") or "denied"
    return part.get("output")


def _kept(part: Part, file_of: Callable[[Part], FileRef | None], left_out: Counter[str]) -> Content | None:
    kind = part["type"]
    if kind in _SILENT:
        return None
    if kind == "file":
        found = file_of(part)
        if found is None:
            left_out[LeftOut.FILE] += 1
        return found or text_part(f"[{part.get('filename') or part.get('mediaType') or 'file'}]")
    if kind in {"text", "reasoning"} or is_tool(part):
        return part
    left_out[LeftOut.HIDDEN if kind == HIDDEN_PART else LeftOut.UNKNOWN] += 1
    return None
