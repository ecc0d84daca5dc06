"""A workspace in memory with files in it, for tests of what reads and writes one."""

from collections.abc import Mapping

from tools_app.core.files.workspace import EntryKind, Workspace
from tools_app.workspace.stores.memory import MemoryWorkspace


async def filled(files: Mapping[str, str | bytes] | None = None) -> MemoryWorkspace:
    """A workspace in memory with these files."""
    made = MemoryWorkspace()
    for path, content in (files or {}).items():
        await made.write_file(path, content)
    return made


async def contents(workspace: Workspace) -> dict[str, bytes]:
    """The bytes of all files by path."""
    paths = [entry.path for entry in await workspace.glob("/**/*") if entry.kind is EntryKind.FILE]
    return {entry.path: data or b"" async for entry, data in workspace.read_many(paths, max_bytes=1 << 40)}
