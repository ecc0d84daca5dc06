"""The part of a workspace that each store has its own of: entries at exact paths.

Links, errors and events are the same for all stores (`planning`, `reads`, `writes`). A `Tree` is used by one
operation, in one thread, while the store holds its lock or transaction. Its paths are normalised and every directory in
them is a real one: `planning.Plan` has followed the links.
"""

import io
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Final, Protocol, runtime_checkable

from tools_app.core.files.joined import JoinedFiles
from tools_app.core.files.workspace import BriefEntry, Entry, EntryKind, WorkspaceInfo
from tools_app.core.guard.reach import written_here
from tools_app.core.origins import Origin

PIECE_BYTES: Final = 256 * 1024
OPEN_TRIES: Final = 3  # a file may be replaced between its listing and its opening


@dataclass(slots=True, kw_only=True)
class StoredContent:
    """Bytes to be written: in memory, in a temporary file, or from a source that can be opened again.

    `object_name`: where the store has put them already. `backup_id`: of the backup that has them. `origin`: of
    strangers, as the writer says (`tools_app.core.guard.reach`).
    """

    size: int
    media_type: str
    data: bytes | None = field(default=None, repr=False)
    file: IO[bytes] | None = field(default=None, repr=False)
    source: Callable[[], IO[bytes]] | None = field(default=None, repr=False)
    object_name: str = ""
    backup_id: int = 0
    origin: Origin | None = field(default_factory=written_here)

    def open(self) -> IO[bytes]:
        """The bytes from their beginning. A temporary file stays open until `close`."""
        if self.source is not None:
            return self.source()
        if self.file is None:
            return io.BytesIO(self.data or b"")
        self.file.seek(0)
        return self.file

    def close(self) -> None:
        """Let the temporary file go."""
        if self.file is not None:
            self.file.close()


@dataclass(slots=True, kw_only=True)
class Planned:
    """An entry as it is to be. `before`: what stands at the path and is replaced by it."""

    path: str
    kind: EntryKind
    content: StoredContent | None = None
    target: str = ""
    before: Entry | None = None
    named_by: Origin | None = field(default_factory=written_here)

    @property
    def origin(self) -> Origin | None:
        """The origin of a file's content, or of the name of anything else."""
        return self.content.origin if self.content else self.named_by

    @property
    def object_name(self) -> str:
        """The object that has the content; empty for none."""
        return self.content.object_name if self.content else ""

    @property
    def is_restored(self) -> bool:
        """Whether an entry that is there becomes what a backup has: nothing of it leaves the database."""
        return self.before is not None and self.content is not None and self.content.backup_id > 0

    @property
    def size(self) -> int:
        """As of an entry."""
        return self.content.size if self.content else len(self.target.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The outcome of a plan: first the removals, each with all below it, then the new entries, parents first."""

    removed: Sequence[Entry]
    planned: Sequence[Planned]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The result of an operation. `removed`: entries that are gone or replaced, at any depth; `entries`: new ones."""

    removed: Sequence[Entry] = ()
    entries: Sequence[Entry] = ()


class Tree(Protocol):
    """Entries at exact paths."""

    def root(self) -> Entry:
        """The root directory."""

    def find(self, paths: Collection[str]) -> dict[str, Entry]:
        """The entries at these paths, without the root; those that do not exist are missing."""

    def children(self, path: str, *, limit: int, offset: int = 0) -> list[Entry]:
        """Entries directly in a directory: directories, files, links, each by name."""

    def is_empty(self, path: str) -> bool:
        """Whether nothing is in a directory, not even what lists leave out."""

    def scan(self, prefix: str) -> Iterator[Entry]:
        """Every entry whose path begins with `prefix`, which ends in a slash, sorted by path."""

    def open(self, entry: Entry) -> IO[bytes]:
        """The bytes of a file; usable after the operation. Errors: `ENOENT` where it is gone."""

    def read_all(self, entries: Sequence[BriefEntry | Entry]) -> list[bytes | None]:
        """The bytes of several files, `None` for those that are gone."""

    def commit(self, changes: Changes) -> Committed:
        """Carry out a plan."""

    def copy(self, source: Entry, target: str) -> list[Entry]:
        """Copy an entry with all below it to a path where nothing is, in a directory that exists. Returns the new."""

    def move(self, source: Entry, target: str) -> tuple[list[Entry], list[Entry]]:
        """Move an entry with all below it, as `copy`. Returns the old and the new ones."""

    def info(self) -> WorkspaceInfo:
        """The totals."""


class Searching(Protocol):
    """The quicker ways of a store whose entries are rows."""

    def brief(self, prefix: str) -> Iterable[BriefEntry]:
        """As `scan`, with little of each entry, in one step."""

    def joined(self, files: Sequence[BriefEntry], *, max_bytes: int) -> list[JoinedFiles]:
        """As `read_all`, of many files that `brief` gave, in order; without those that are gone or larger now."""


@runtime_checkable
class CanSearchRows(Protocol):
    """A tree that has them."""

    searching: Searching
