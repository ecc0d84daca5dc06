"""A workspace: a file system with a root, whatever keeps its files.

Tools, the sandbox, the page and the API use this protocol and nothing else of a store. Paths are absolute within the
workspace (`/notes/today.md`); every method accepts any spelling and normalises it (`tools_app.core.files.paths`), and
none can leave the root. Symbolic links are followed along the whole path unless a method says otherwise.

Errors of all methods: `FileFailed` with a POSIX name as its `errno` (`ENOENT`, `EEXIST`, `EISDIR`, `ENOTDIR`,
`ENOTEMPTY`, `ELOOP`, `EINVAL`, `EPERM`, `EFBIG`, `ENAMETOOLONG`, `ENOSPC`); `FileConflict` where another version was
expected.
"""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol, TypeAlias

from tools_app.core.origins import Origin


class EntryKind(StrEnum):
    """The kind of the entry at a path."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry. `size`: bytes, 0 for directories; `target`: of a link, as it was written.

    `version`: an opaque text that differs after every change of the content, for detecting conflicts.
    `origin`: of an entry whose content, name or target strangers may have written (`tools_app.core.origins`).
    """

    path: str
    kind: EntryKind
    size: int = 0
    media_type: str = ""
    target: str = ""
    version: str = ""
    origin: Origin | None = None
    created_at: datetime
    modified_at: datetime

    @property
    def name(self) -> str:
        """The last component of the path; empty for the root."""
        return self.path.rsplit("/", 1)[-1]


class BriefEntry(NamedTuple):
    """The little that searches need of an entry. `ordinal`: its place among all that one looked at, if it is known."""

    path: str
    kind: EntryKind
    size: int
    origin: Origin | None = None
    ordinal: int = -1

    @classmethod
    def of(cls, entry: Entry) -> "BriefEntry":
        """Make that of an entry."""
        return cls(entry.path, entry.kind, entry.size, entry.origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceInfo:
    """Totals of a workspace. The root counts as a directory; `object_count`: files that are kept in object storage."""

    file_count: int
    directory_count: int
    byte_count: int
    object_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One thing that changed. A move is a deletion and a creation."""

    kind: Literal["created", "updated", "deleted"]
    path: str
    entry_kind: EntryKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Write a file, with its parent directories. `expected_version`: of what it replaces; `""` for a new file only."""

    path: str
    content: bytes
    media_type: str = ""
    expected_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeDirectory:
    """Make a directory, with its parents; nothing happens where there is one."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Remove an entry with all below it; nothing happens where there is none.

    `recursive=False`: a directory must have nothing left in it (`ENOTEMPTY`).
    """

    path: str
    expected_version: str | None = None
    recursive: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Make a symbolic link, in place of a link or a file that is there."""

    path: str
    target: str


Operation: TypeAlias = Put | MakeDirectory | Remove | Link
ChangeListener: TypeAlias = Callable[[Sequence[FileChange]], None]


class Workspace(Protocol):
    """A file system with a root."""

    async def stat(self, path: str) -> Entry | None:
        """The entry at a path, following links; `None` where there is none."""

    async def lstat(self, path: str) -> Entry | None:
        """The entry at a path; a link in the last component is not followed."""

    async def read_file(self, path: str) -> str | None:
        """The text of a file, undecodable bytes replaced; `None` where there is none."""

    async def read_bytes(self, path: str) -> bytes | None:
        """The bytes of a file; `None` where there is none."""

    def read_stream(self, path: str, *, start: int = 0) -> AsyncIterator[bytes]:
        """The bytes of a file from an offset, in pieces. Errors: `ENOENT`."""

    def read_many(self, paths: Sequence[str], *, max_bytes: int) -> AsyncIterator[tuple[Entry, bytes | None]]:
        """Files with their bytes, read in batches, in the order of the paths; those that are gone are left out.

        Files above `max_bytes` come without their bytes.
        """

    async def write_file(
        self, path: str, content: str | bytes, *, media_type: str = "", expected_version: str | None = None
    ) -> Entry:
        """Write a file, with its parent directories. Durable when it returns."""

    async def write_stream(
        self,
        path: str,
        chunks: AsyncIterable[bytes],
        *,
        media_type: str = "",
        expected_version: str | None = None,
    ) -> Entry:
        """Write a file from pieces without holding it whole. It appears whole or not at all. Errors: `EFBIG`."""

    async def append_file(self, path: str, content: str | bytes) -> Entry:
        """Add to the end of a file, which is made where there is none."""

    async def delete_file(self, path: str) -> bool:
        """Delete a file or a link; false where there is none. Errors: `EISDIR`."""

    async def exists(self, path: str) -> bool:
        """Whether there is an entry, be it a link that leads nowhere."""

    async def file_exists(self, path: str) -> bool:
        """Whether there is a file; false for directories."""

    async def read_dir(self, path: str = "/", *, limit: int = 1000, offset: int = 0) -> list[Entry]:
        """The direct children of a directory, directories first, then by name; none where there is no directory."""

    async def mkdir(self, path: str, *, recursive: bool = False) -> None:
        """Make a directory. Errors: `ENOENT`, `EEXIST`, `ENOTDIR`; `recursive` makes parents and accepts one there."""

    async def rm(self, path: str, *, recursive: bool = False, force: bool = False) -> None:
        """Remove an entry. Errors: `EPERM` for the root, `ENOENT` unless `force`, `ENOTEMPTY` unless `recursive`."""

    async def cp(self, source: str, target: str, *, recursive: bool = False) -> None:
        """Copy a file, or a directory where `recursive`. Errors: `EISDIR`, `EEXIST`; `EINVAL` into itself."""

    async def mv(self, source: str, target: str) -> None:
        """Move an entry; a file that is there is replaced, a directory refused."""

    async def symlink(self, target: str, path: str) -> None:
        """Make a symbolic link at `path`. Errors: `EEXIST`, `EINVAL`."""

    async def readlink(self, path: str) -> str:
        """The target of a link. Errors: `EINVAL` for anything else."""

    async def realpath(self, path: str) -> str:
        """The path with every link resolved. Errors: `ENOENT`, `ELOOP`."""

    async def glob(self, pattern: str, *, limit: int | None = None, ignored: bool = True) -> list[Entry]:
        """Entries whose path matches, sorted by path. `ignored=False` leaves out what `.gitignore` files exclude.

        A pattern without a leading slash is rooted at `/`. Links are listed and not entered.
        """

    async def diff(self, path: str, other: str) -> str:
        """A unified diff of two files with three lines of context; empty when they are equal. Errors: `EFBIG`."""

    async def diff_content(self, path: str, content: str) -> str:
        """A unified diff of a file and a new content for it."""

    async def apply(self, operations: Sequence[Operation]) -> list[FileChange]:
        """Do several things at once: all of them or, where the store has transactions, none. Returns what changed."""

    async def info(self) -> WorkspaceInfo:
        """The totals."""

    def on_change(self, listener: ChangeListener) -> Callable[[], None]:
        """Call this after every change made through this object; the returned function ends it."""
