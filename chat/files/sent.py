"""The files in the messages of a conversation, for clients, and their way into its workspace."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import count

from chat.files.attachments import attachment_id, open_file, rows_of
from chat.files.serving import PIECE_BYTES
from chat.models import AgentInstance, Attachment
from sessions_app.messages.selectors import window
from thinkproject.kernel.aio import db
from tools_app.core.files.failures import failed
from tools_app.core.files.workspace import Entry, Workspace
from tools_app.errors import FileConflict

MAX_TRIES = 50
"""Names that are tried for a copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFile:
    """A file and the newest message that has it. `role`: of that message."""

    row: Attachment
    message_id: str
    role: str


def files_of(instance: AgentInstance) -> list[SentFile]:
    """The files in the newest 500 messages of the shown path, of 512 KiB, the newest first. Three queries."""
    if instance.session_id is None:
        return []
    found: dict[str, tuple[str, str, str]] = {}  # by its id: its URL and the message
    for message in reversed(window(instance.session_id)):
        for part in message.parts:
            url = part.get("url") if part.get("type") == "file" else None
            known = attachment_id(url)
            if known is not None and known not in found:
                found[known] = (str(url), message.id, message.role)
    rows = rows_of([url for url, _, _ in found.values()], instance.owner_id)
    return [
        SentFile(row=rows[known], message_id=message_id, role=role)
        for known, (_, message_id, role) in found.items()
        if known in rows
    ]


async def copy_to_workspace(row: Attachment, workspace: Workspace, directory: str) -> Entry:
    """Copy a file into a directory under its name, or with a number where that is taken. Nothing is replaced.

    Errors: `FileFailed`, also where there is no room; `AttachmentNotFound` where its bytes are gone.
    """
    stem, dot, ending = row.name.rpartition(".")
    stem, ending = (stem, f".{ending}") if dot and stem else (row.name, "")
    base = directory.rstrip("/")
    for number in count(1):
        path = f"{base}/{stem}{f' ({number})' if number > 1 else ''}{ending}"
        if number > MAX_TRIES:
            raise failed("EEXIST", path)
        if await workspace.exists(path):
            continue
        try:
            return await workspace.write_stream(path, _pieces(row), media_type=row.media_type, expected_version="")
        except FileConflict:
            continue  # it came in between
    raise AssertionError


async def _pieces(row: Attachment) -> AsyncIterator[bytes]:
    file = await db(open_file, row)
    try:
        while piece := await db(file.read, PIECE_BYTES):
            yield piece
    finally:
        await db(file.close)
