"""The frames of threads and workspaces: text to requests, values to text. Pure.

They travel on the socket of a `ThreadsAgent` beside the frames of `frames.py`, which calls them foreign. Names on the
wire are those of the coding agent that came before this one (`docs/howto/coding-agent-threads.md`); times are
milliseconds since 1970.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chat.core.wire.brief_events import ReasoningPiece, TextPiece, ToolCalled, brief_event
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load

READ_CHARS: Final = 100_000
"""Of a file that `read_file` asks for; what follows is left out, with a note."""

REQUESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "add": ("threadId", "message"),
    "delete": ("threadId", "id"),
    "clear_request": ("threadId",),
    "create_thread": (),
    "delete_thread": ("threadId",),
    "rename_thread": ("threadId", "name"),
    "get_messages": ("threadId",),
    "run": ("threadId",),
    "create_workspace": (),
    "delete_workspace": ("workspaceId",),
    "rename_workspace": ("workspaceId", "name"),
    "attach_workspace": ("threadId", "workspaceId"),
    "detach_workspace": ("threadId",),
    "list_files": ("workspaceId", "dir"),
    "read_file": ("workspaceId", "path"),
}
"""Types of clients' frames, and the fields that each must have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRequest:
    """A frame of a client: its type, and the values of its fields in the order of `REQUESTS`.

    `name`: what `create_thread` and `create_workspace` may name.
    """

    kind: str
    values: tuple[JSONValue, ...]
    name: str = ""


def parse(text: str) -> ThreadRequest | None:
    """Read a client's frame; `None` for what is no JSON, of another type, or has a field that is missing or wrong."""
    try:
        raw = load(text)
    except ValueError:
        return None
    kind = raw.get("type") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or not isinstance(kind, str) or kind not in REQUESTS:
        return None
    values = tuple(raw.get(field) for field in REQUESTS[kind])
    if not all(_fits(field, value) for field, value in zip(REQUESTS[kind], values, strict=True)):
        return None
    name = raw.get("name")
    return ThreadRequest(kind=kind, values=values, name=name if isinstance(name, str) else "")


def _fits(field: str, value: JSONValue) -> bool:
    return isinstance(value, dict) if field == "message" else isinstance(value, str)


def threads(values: Sequence[JSONObject]) -> str:
    """All threads: `{id, name, workspaceId, createdAt, lastActiveAt}`, the one active last first."""
    return dump({"type": "threads", "threads": list(values)})


def workspaces(values: Sequence[JSONObject]) -> str:
    """All workspaces: `{id, name, createdAt}`, oldest first."""
    return dump({"type": "workspaces", "workspaces": list(values)})


def sync(thread_id: str, messages: Sequence[JSONObject]) -> str:
    """The messages of a thread: `{id, role, content, reasoning?, createdAt}`, oldest first."""
    return dump({"type": "sync", "threadId": thread_id, "messages": list(messages)})


def clear(thread_id: str) -> str:
    """A thread was emptied."""
    return dump({"type": "clear", "threadId": thread_id})


def stream_end(thread_id: str) -> str:
    """A run of a thread is over, however it ended."""
    return dump({"type": "stream_end", "threadId": thread_id})


def file_list(workspace_id: str, directory: str, entries: Sequence[JSONObject]) -> str:
    """The entries of a directory, for the client that asked."""
    return dump({"type": "file_list", "workspaceId": workspace_id, "dir": directory, "entries": list(entries)})


def file_content(workspace_id: str, path: str, content: str | None) -> str:
    """The text of a file, for the client that asked; null where there is none. See `shortened`."""
    return dump({"type": "file_content", "workspaceId": workspace_id, "path": path, "content": content})


def shortened(text: str, byte_count: int) -> str:
    """The first `READ_CHARS` characters of a file, with a note where there are more. `byte_count`: of the whole."""
    if len(text) <= READ_CHARS:
        return text
    return f"{text[:READ_CHARS]}\n\n... [truncated: the file has {byte_count} bytes]"


def of_chunk(thread_id: str, text: str) -> str:
    """The frame of a chunk of a running turn; empty for chunks that these frames do not show."""
    match brief_event(load(text)):
        case TextPiece(delta=delta):
            return dump({"type": "stream_delta", "threadId": thread_id, "delta": delta})
        case ReasoningPiece(delta=delta):
            return dump({"type": "reasoning_delta", "threadId": thread_id, "delta": delta})
        case ToolCalled(name=name, arguments=arguments):
            return dump({"type": "tool_call", "threadId": thread_id, "toolName": name, "args": arguments})
    return ""
