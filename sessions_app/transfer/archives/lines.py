"""A conversation of an archive as the lines of an export: the one writer of trees (`import_session.py`) reads them."""

from collections.abc import Callable, Iterator
from datetime import datetime

from sessions_app.core.messages.oversized import ROW_MAX_BYTES
from sessions_app.core.messages.shapes import Part
from sessions_app.transfer.archives.shapes import ArchivedMessage, Conversation, FileRef, LeftOut
from sessions_app.transfer.archives.values import EARLIEST
from sessions_app.transfer.export import FORMAT, VERSION
from thinkproject.kernel.jsonvalue import JSONObject, byte_size, dump


def conversation_lines(conversation: Conversation, part_of: Callable[[FileRef], Part]) -> Iterator[str]:
    """The lines in order. `part_of`: gives the part that stands for a file. Counts messages that will be shortened."""
    began = conversation.created_at or conversation.updated_at or EARLIEST
    yield dump(
        {
            "kind": "session",
            "format": FORMAT,
            "version": VERSION,
            "leaf": conversation.leaf_id,
            "name": conversation.title,
            "source": conversation.product.value,
            "created_at": began.isoformat(),
        }
    )
    instants: dict[str, datetime] = {}
    for message in conversation.messages:
        # One without a time was written after the one above it.
        instants[message.id] = message.created_at or instants.get(message.parent_id or "", began)
        line = _line(message, instants[message.id], part_of)
        if byte_size(line) > ROW_MAX_BYTES:
            conversation.left_out[LeftOut.SHORTENED] += 1
        yield dump(line)
    yield dump({"kind": "end", "messages": len(conversation.messages)})


def _line(message: ArchivedMessage, instant: datetime, part_of: Callable[[FileRef], Part]) -> JSONObject:
    line: JSONObject = {
        "kind": "message",
        "id": message.id,
        "role": message.role,
        "parent": message.parent_id,
        "parts": [part_of(part) if isinstance(part, FileRef) else part for part in message.parts],
        "created_at": instant.isoformat(),
    }
    if message.metadata:
        line["metadata"] = message.metadata
    return line
