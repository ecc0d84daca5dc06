"""A workspace in memory, as small as the tests of `state.*` need it."""

import difflib
import fnmatch
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

from tools_app.core.files.workspace import Entry, EntryKind, FileChange, Operation, Put, Remove
from tools_app.errors import FileFailed

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class MemoryFiles:
    """Files by path; a directory is whatever has files below it."""

    def __init__(self, **files: str) -> None:
        self.files: dict[str, bytes] = {f"/{name.replace('__', '.')}": text.encode() for name, text in files.items()}

    def _entry(self, path: str) -> Entry:
        size = len(self.files[path])
        return Entry(path=path, kind=EntryKind.FILE, size=size, version=str(size), created_at=NOW, modified_at=NOW)

    async def stat(self, path: str) -> Entry | None:
        return self._entry(path) if path in self.files else None

    async def exists(self, path: str) -> bool:
        return path in self.files

    async def realpath(self, path: str) -> str:
        return path

    async def read_file(self, path: str) -> str | None:
        return self.files[path].decode() if path in self.files else None

    async def read_bytes(self, path: str) -> bytes | None:
        return self.files.get(path)

    async def read_stream(self, path: str, *, start: int = 0) -> AsyncIterator[bytes]:
        yield self.files[path][start:]

    async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> AsyncIterator[tuple[Entry, bytes | None]]:
        for path in paths:
            yield self._entry(path), self.files[path]

    async def write_file(self, path: str, content: str | bytes, **_: Any) -> Entry:
        self.files[path] = content.encode() if isinstance(content, str) else content
        return self._entry(path)

    async def append_file(self, path: str, content: str | bytes) -> Entry:
        return await self.write_file(path, (await self.read_file(path) or "") + str(content))

    async def glob(self, pattern: str, *, limit: int | None = None, ignored: bool = True) -> list[Entry]:
        wanted = pattern.replace("**/", "")
        return [self._entry(path) for path in sorted(self.files) if fnmatch.fnmatch(path, wanted)][:limit]

    async def rm(self, path: str, *, recursive: bool = False, force: bool = False) -> None:
        if path not in self.files:
            raise FileFailed(f"No such file: {path}", errno="ENOENT", path=path)
        del self.files[path]

    async def diff_content(self, path: str, content: str) -> str:
        before = self.files.get(path, b"").decode().splitlines()
        return "\n".join(difflib.unified_diff(before, content.splitlines(), lineterm="", n=0))

    async def apply(self, operations: Sequence[Operation]) -> list[FileChange]:
        changes = []
        for operation in operations:
            if isinstance(operation, Put):
                self.files[operation.path] = operation.content
                changes.append(FileChange(kind="updated", path=operation.path, entry_kind=EntryKind.FILE))
            elif isinstance(operation, Remove):
                self.files.pop(operation.path, None)
                changes.append(FileChange(kind="deleted", path=operation.path, entry_kind=EntryKind.FILE))
        return changes
