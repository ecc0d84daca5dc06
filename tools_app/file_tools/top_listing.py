"""The root of a workspace as a short list for a system prompt, and the words where there is nothing to list. Pure."""

from collections.abc import Sequence
from typing import Final

from tools_app.core.files.workspace import Entry, EntryKind

MAX_SHOWN: Final = 200
NO_WORKSPACE: Final = "There is no workspace attached to this conversation: you cannot read or write files."
EMPTY_WORKSPACE: Final = "The workspace is empty."


def top_listing(entries: Sequence[Entry], *, has_more: bool = False) -> str:
    """The entries, one a line, fenced: `📁 name`, `📄 name (n B)` or from 1,024 bytes `(n KB)`, rounded.

    `has_more`: there are others, which the last line says. Without entries the workspace is empty.
    """
    if not entries:
        return EMPTY_WORKSPACE
    lines = [_line(entry) for entry in entries] + (["… and more"] if has_more else [])
    return "\n".join(["The workspace as this turn began:", "```", *lines, "```"])


def _line(entry: Entry) -> str:
    name = " ".join(entry.name.replace("`", "'").split())  # names are not ours: none ends the fence
    if entry.kind is EntryKind.DIRECTORY:
        return f"📁 {name}"
    return f"📄 {name} ({_size(entry.size)})"


def _size(byte_count: int) -> str:
    return f"{byte_count} B" if byte_count < 1024 else f"{(byte_count + 512) // 1024} KB"
