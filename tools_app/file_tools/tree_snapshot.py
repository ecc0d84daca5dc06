"""A picture of a workspace for the system prompt: its tree, within limits."""

from collections.abc import Sequence
from typing import Final

from tools_app.core.files.operations import FindOperations
from tools_app.core.files.paths import name_of, parent_of
from tools_app.core.files.reading import shown_size
from tools_app.core.files.workspace import Entry, EntryKind

MAX_READ: Final = 5_000
"""Entries that are looked at, in the order of their paths."""

EMPTY: Final = "(empty)"


async def tree_snapshot(operations: FindOperations, *, max_entries: int = 200, max_chars: int = 8_000) -> str:
    """Draw the tree of a workspace, one entry a line, indented, without what `.gitignore` files exclude.

    Of a large one the entries nearest to the root are shown; a directory with others says how many, as `... 12 more`.
    At most `max_entries` entries and `max_chars` characters. An empty workspace is `(empty)`. Errors: those of `glob`.
    """
    entries = await operations.glob("**", limit=MAX_READ + 1, ignored=False)
    is_whole = len(entries) <= MAX_READ
    children = _by_directory(entries[:MAX_READ])
    if not children:
        return EMPTY
    end = "" if is_whole else "\n... and more"
    count = max_entries
    while True:
        text = "\n".join(_lines(children, _nearest(children, count))) + end
        if len(text) <= max_chars or count <= 1:
            return text[:max_chars]
        count = min(count - 1, count * max_chars // len(text))


def _by_directory(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """The entries of each directory, directories first."""
    children: dict[str, list[Entry]] = {}
    for entry in entries:
        children.setdefault(parent_of(entry.path), []).append(entry)
    for inside in children.values():
        inside.sort(key=lambda entry: (entry.kind is not EntryKind.DIRECTORY, entry.path))
    return children


def _nearest(children: dict[str, list[Entry]], count: int) -> set[str]:
    """The paths of the entries to show: level by level from the root."""
    shown: set[str] = set()
    level = ["/"]
    while level:
        below: list[str] = []
        for directory in level:
            inside = children.get(directory, [])[: count - len(shown)]
            shown.update(entry.path for entry in inside)
            below += [entry.path for entry in inside if entry.kind is EntryKind.DIRECTORY]
        level = below
    return shown


def _lines(children: dict[str, list[Entry]], shown: set[str]) -> list[str]:
    """Depth first, without recursion: paths may be deep."""
    lines: list[str] = []
    waiting: list[tuple[int, Entry | str]] = [(0, entry) for entry in _shown_first(children, "/", shown)]
    while waiting:
        depth, entry = waiting.pop()
        if isinstance(entry, str):
            lines.append("  " * depth + entry)
            continue
        lines.append("  " * depth + _line(entry))
        if entry.kind is EntryKind.DIRECTORY:
            waiting += [(depth + 1, each) for each in _shown_first(children, entry.path, shown)]
    return lines


def _shown_first(children: dict[str, list[Entry]], directory: str, shown: set[str]) -> list[Entry | str]:
    """The entries of a directory in reverse order, what is left out first."""
    inside = children.get(directory, [])
    visible: list[Entry | str] = [entry for entry in inside if entry.path in shown]
    hidden = len(inside) - len(visible)
    if hidden:
        visible.append(f"... {hidden} more")
    return visible[::-1]


def _line(entry: Entry) -> str:
    match entry.kind:
        case EntryKind.DIRECTORY:
            return f"{name_of(entry.path)}/"
        case EntryKind.SYMLINK:
            return f"{name_of(entry.path)} -> {entry.target}"
        case _:
            return f"{name_of(entry.path)} ({shown_size(entry.size)})"
