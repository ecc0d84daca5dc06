"""The few operations that each file tool needs, so that a tool can be made over any storage.

A `Workspace` satisfies them all. Errors of all operations: `FileFailed`, as in `tools_app.core.files.workspace`. What a
tool can do better with a further operation is in the protocols that begin with `Can`; it looks whether it is there.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol, runtime_checkable

from tools_app.core.files.joined import JoinedFiles
from tools_app.core.files.workspace import BriefEntry, Entry


@runtime_checkable
class CanStat(Protocol):
    """Looks up one entry: `list` tells an empty directory from a missing one, `edit` notices other writers."""

    async def stat(self, path: str) -> Entry | None:
        """The entry at a path, following links; `None` where there is none."""


@runtime_checkable
class CanReadText(Protocol):
    """Reads one file: `list` honours `.gitignore` files."""

    async def read_file(self, path: str) -> str | None:
        """The text of a file, undecodable bytes replaced; `None` where there is none."""


@runtime_checkable
class CanReadBytes(Protocol):
    """Reads the bytes of one file: `edit` leaves files alone that are no text."""

    async def read_bytes(self, path: str) -> bytes | None:
        """The bytes of a file; `None` where there is none."""


@runtime_checkable
class CanReadStream(Protocol):
    """Reads one file in pieces: `read` shows pages of very large ones, `grep` searches them."""

    def read_stream(self, path: str, *, start: int = 0) -> AsyncIterator[bytes]:
        """The bytes of a file from an offset, in pieces. Errors: `ENOENT`."""


@runtime_checkable
class CanReadMany(Protocol):
    """Reads many files at once: `grep` is quick over thousands."""

    def read_many(self, paths: Sequence[str], *, max_bytes: int) -> AsyncIterator[tuple[Entry, bytes | None]]:
        """Files with their bytes in the order of the paths; without their bytes if they have more than `max_bytes`."""


@runtime_checkable
class CanSearchMany(Protocol):
    """Looks at thousands of files in few steps: `find` and `grep` take the time of the disk."""

    async def find_brief(self, pattern: str, *, ignored: bool = True) -> list[BriefEntry]:
        """As `glob`, with what searches need of each entry."""

    def read_found(self, files: Sequence[BriefEntry], *, max_bytes: int) -> AsyncIterator[list[JoinedFiles]]:
        """Contents of files that were found, in order, some at a time; without those that are gone, or grown."""


class ReadOperations(CanReadText, CanReadBytes, CanStat, Protocol):
    """The operations of `read`."""


class WriteOperations(Protocol):
    """The operations of `write`. Writing makes parent directories, or fails with `ENOENT`; then `mkdir` is called."""

    async def write_file(
        self, path: str, content: str | bytes, *, media_type: str = "", expected_version: str | None = None
    ) -> Entry:
        """Write a file. Durable when it returns."""

    async def mkdir(self, path: str, *, recursive: bool = False) -> None:
        """Make a directory; `recursive` makes parents and accepts one that is there."""


class EditOperations(CanReadText, Protocol):
    """The operations of `edit`."""

    async def write_file(
        self, path: str, content: str | bytes, *, media_type: str = "", expected_version: str | None = None
    ) -> Entry:
        """Write a file in place of the expected version; an empty one means a new file. Errors: `FileConflict`."""


@runtime_checkable
class ListOperations(Protocol):
    """The operations of `list`. Other tools look with them for names that look alike."""

    async def read_dir(self, path: str = "/", *, limit: int = 1000, offset: int = 0) -> list[Entry]:
        """The direct children of a directory, directories first, then by name."""


class FindOperations(Protocol):
    """The operations of `find`."""

    async def glob(self, pattern: str, *, limit: int | None = None, ignored: bool = True) -> list[Entry]:
        """Entries whose path matches, sorted by path; `ignored=False` leaves out what `.gitignore` files exclude."""


class GrepOperations(FindOperations, CanReadText, Protocol):
    """The operations of `grep`."""


class DeleteOperations(Protocol):
    """The operations of `delete`."""

    async def rm(self, path: str, *, recursive: bool = False, force: bool = False) -> None:
        """Remove an entry; `force` accepts that there is none."""
