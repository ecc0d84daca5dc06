"""The changes of a script so far, on top of the files that it began with. Pure.

The process of the script tells each change before it goes on; nothing that it says is believed. `operations` is the
difference to the beginning: what was made and removed again is not in it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from tools_app.core.files.differences import differences
from tools_app.core.files.failures import failed
from tools_app.core.files.paths import chain, check_target, normalise, parent_of
from tools_app.core.files.workspace import Entry, EntryKind, Operation

MAX_FILE_BYTES: Final = 1_000_000
"""A larger file is not changed; it is named among the skipped ones when a script tries to."""

MAX_READ_BYTES: Final = 64_000_000
"""The same for reading. A file above the other limit is read in pieces."""

IN_PIECES: Final = "; grep, head, tail and wc read it in pieces"

MAX_TOTAL_BYTES: Final = 20_000_000
MAX_CHANGES: Final = 20_000
SYSTEM: Final = frozenset({"bin", "dev", "proc", "sys", "tmp", "usr"})
"""New files below these directories of the root are never kept."""


class FileOverlay:
    """Entries with changes on top. Paths are real ones: the process follows the links before it tells."""

    def __init__(self, entries: Iterable[Entry], *, whole_bytes: int = MAX_READ_BYTES) -> None:
        """`whole_bytes`: of the largest file that the process may hold whole."""
        self._whole_bytes = whole_bytes
        self._base = {entry.path: entry for entry in entries}
        self._kinds = {path: entry.kind for path, entry in self._base.items()}
        self._children = Counter(parent_of(path) for path in self._base)
        self._files: dict[str, bytearray] = {}
        self._links: dict[str, str] = {}
        self._seen: set[str] = set()
        self._changes = 0
        self._bytes = 0
        self.skipped: set[str] = set()

    def kind(self, path: str) -> EntryKind | None:
        """The kind of the entry at a path now."""
        return EntryKind.DIRECTORY if path == "/" else self._kinds.get(path)

    def readable(self, paths: Sequence[str]) -> list[str]:
        """The stored files among these that may be read at once. Errors: `EFBIG` where the first is too large."""
        if paths and self._is_protected(paths[0]):
            self.skipped.add(paths[0])
            raise failed("EFBIG", paths[0], f"file is larger than {MAX_FILE_BYTES} bytes")
        return [path for path in paths if path in self._base and not self._is_protected(path)]

    def check_piece(self, path: str, entry: Entry | None, *, is_whole: bool) -> None:
        """Look whether a piece of a large file may be read. Errors: `ENOENT`, `EFBIG`, `EIO` for one that changes.

        `is_whole`: the process is going to hold all pieces at once.
        """
        if path not in self._base or entry is None or entry.kind is not EntryKind.FILE:
            raise failed("ENOENT", path)
        if entry.size > MAX_READ_BYTES:
            self.skipped.add(path)
            raise failed("EFBIG", path, f"file is larger than {MAX_READ_BYTES} bytes")
        if is_whole and entry.size > self._whole_bytes:
            self.skipped.add(path)
            raise failed("EFBIG", path, f"file is larger than {self._whole_bytes} bytes{IN_PIECES}")
        self.saw(path, entry)
        if self._base[path].version != entry.version:
            raise failed("EIO", path, "file was changed by others while it was read")

    def saw(self, path: str, entry: Entry) -> None:
        """Note the version that was read first, which may be newer than at the beginning.

        A later one is not noted: what the script writes may come of the first.
        """
        if path not in self._seen:
            self._seen.add(path)
            self._base[path] = entry

    def write(self, path: str, data: bytes) -> None:
        """Write a whole file. Errors: `EISDIR`, `ENOTDIR`, `EPERM`, `EFBIG`, `ENOSPC`."""
        path = self._writable(path)
        self._reserve(path, len(data) - len(self._files.get(path, b"")), len(data))
        self._set(path, EntryKind.FILE)
        self._files[path] = bytearray(data)

    def append(self, path: str, data: bytes) -> None:
        """Add to a file that was written before. Errors: as `write`; `ENOENT` for any other file."""
        path = self._writable(path)
        if path not in self._files:
            raise failed("ENOENT", path)
        self._reserve(path, len(data), len(self._files[path]) + len(data))
        self._files[path] += data

    def check(self, paths: Iterable[str], size: int) -> None:
        """Look whether a whole batch can be noted, so that a refused one changes nothing. Errors: `EPERM`, `ENOSPC`."""
        for path in paths:
            self._check_protected(normalise(path))
        if self._bytes + size > MAX_TOTAL_BYTES:
            raise failed("ENOSPC", "/", "one script may not write so much")

    def make_directory(self, path: str) -> None:
        """Make a directory with its parents. Errors: `EEXIST`, `ENOTDIR`, `EPERM`, `ENOSPC`."""
        path = normalise(path)
        if self.kind(path) is EntryKind.DIRECTORY:
            return
        if self.kind(path) is not None:
            raise failed("EEXIST", path)
        self._make_parents(path)
        self._reserve(path, 0, 0)
        self._set(path, EntryKind.DIRECTORY)

    def link(self, path: str, target: str) -> None:
        """Make a link, also in place of one. Errors: `EISDIR`, `ENOTDIR`, `EPERM`, `EINVAL`, `ENOSPC`."""
        path = self._writable(path)
        check_target(target, path)
        self._reserve(path, 0, 0)
        self._set(path, EntryKind.SYMLINK)
        self._links[path] = target

    def remove(self, path: str) -> None:
        """Remove a file, a link or an empty directory; nothing where there is nothing. Errors: `EPERM`, `ENOTEMPTY`."""
        path = normalise(path)
        if path == "/":
            raise failed("EPERM", path)
        self._check_protected(path)
        if self._children[path]:
            raise failed("ENOTEMPTY", path)
        self._unset(path)

    def operations(self) -> list[Operation]:
        """The operations to be done, with the versions that the script began with."""
        return differences(self._base, self._kinds, self._files, self._links)

    def _is_protected(self, path: str) -> bool:
        entry = self._base.get(path)
        is_stored = self._kinds.get(path) is EntryKind.FILE and path not in self._files
        return is_stored and entry is not None and entry.size > MAX_FILE_BYTES

    def _check_protected(self, path: str) -> None:
        if self._is_protected(path):
            self.skipped.add(path)
            raise failed("EPERM", path, f"file is larger than {MAX_FILE_BYTES} bytes, so it is left as it is")

    def _writable(self, path: str) -> str:
        path = normalise(path)
        if self.kind(path) is EntryKind.DIRECTORY:
            raise failed("EISDIR", path)
        self._check_protected(path)
        self._make_parents(path)
        return path

    def _make_parents(self, path: str) -> None:
        if self.kind(path) is None and path.split("/", 2)[1] in SYSTEM:
            raise failed("EPERM", path, "new files below system directories are not kept")
        for parent in chain(parent_of(path)):
            kind = self.kind(parent)
            if kind not in {None, EntryKind.DIRECTORY}:
                raise failed("ENOTDIR", parent)
            self._set(parent, EntryKind.DIRECTORY)

    def _set(self, path: str, kind: EntryKind) -> None:
        if self._kinds.get(path) is kind:
            return
        self._unset(path)
        self._kinds[path] = kind
        self._children[parent_of(path)] += 1

    def _unset(self, path: str) -> None:
        self._bytes -= len(self._files.pop(path, b""))
        self._links.pop(path, None)
        if self._kinds.pop(path, None) is not None:
            self._children[parent_of(path)] -= 1

    def _reserve(self, path: str, more: int, size: int) -> None:
        """Count a change. Errors: `EFBIG`, `ENOSPC`."""
        if size > MAX_FILE_BYTES:
            raise failed("EFBIG", path, f"file would be larger than {MAX_FILE_BYTES} bytes")
        self._changes += 1
        if self._bytes + more > MAX_TOTAL_BYTES or self._changes > MAX_CHANGES:
            raise failed("ENOSPC", path, "one script may not write so much")
        self._bytes += more
