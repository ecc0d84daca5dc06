"""Files of a workspace of the registry, as the frames and verbs of threads give them."""

from chat.agent.base import InstanceKey
from chat.core.wire.thread_frames import READ_CHARS, shortened
from chat.threads.messages import milliseconds
from chat.threads.registry import find_workspace
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.workspace import Entry, EntryKind
from tools_app.errors import FileFailed
from tools_app.workspace.services import open_workspace
from tools_app.workspace.stores.database import DatabaseWorkspace

MAX_ENTRIES = 1_000
"""Of a directory that is listed."""
_HEAD_BYTES = 4 * (READ_CHARS + 1)  # as many as these characters can have


async def workspace_at(key: InstanceKey, workspace_id: str) -> DatabaseWorkspace | None:
    """Open a workspace of the orchestrator's registry; `None` for any other."""
    found = await db(find_workspace, key, workspace_id)
    return None if found is None else open_workspace(found.stored_id, can_write=found.can_write)


async def entries_of(workspace: DatabaseWorkspace, directory: str) -> list[JSONObject]:
    """The first `MAX_ENTRIES` entries of a directory, directories first; none where there is no directory."""
    try:
        return [_entry(entry) for entry in await workspace.read_dir(directory or "/", limit=MAX_ENTRIES)]
    except FileFailed:
        return []


async def text_of(workspace: DatabaseWorkspace, path: str) -> str | None:
    """The text of a file, its first `READ_CHARS` characters with a note where there are more; `None` without a file."""
    try:
        found = await workspace.stat(path)
        if found is None or found.kind is not EntryKind.FILE:
            return None
        head = b""
        async for piece in workspace.read_stream(path):
            head += piece
            if len(head) >= _HEAD_BYTES:
                break
    except FileFailed:
        return None
    return shortened(head.decode("utf-8", "replace"), found.size)


def _entry(entry: Entry) -> JSONObject:
    return {
        "path": entry.path,
        "name": entry.name,
        "type": entry.kind.value,
        "mimeType": entry.media_type,
        "size": entry.size,
        "createdAt": milliseconds(entry.created_at),
        "updatedAt": milliseconds(entry.modified_at),
    }
