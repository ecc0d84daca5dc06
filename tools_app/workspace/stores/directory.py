"""A workspace in a directory of the disk."""

import asyncio
import fcntl
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TypeVar

from tools_app.core.files.paths import joined
from tools_app.core.files.workspace import Entry, EntryKind, WorkspaceInfo
from tools_app.core.origins import Origin
from tools_app.errors import FileFailed
from tools_app.workspace.stores import rooted
from tools_app.workspace.stores.planning import moved
from tools_app.workspace.stores.tree import Changes, Committed, Planned, StoredContent, Tree
from tools_app.workspace.stores.writes import Writes

T = TypeVar("T")


class DirectoryWorkspace(Writes):
    """Plain files below a root that no path, link or race leaves.

    Links on the disk are followed within the workspace: `/x` is the root's `x`. Writers of all processes that use this
    class take turns (`flock` of the root); other programs do not, so `expected_version` is only a check for them.
    Several operations are checked before the first is done, and a crash may leave some done. Media types are detected
    when asked for one entry and not stored; lists have none. Names that workspaces refuse are not listed.
    """

    def __init__(self, root: Path | str, *, is_trusted: bool = False) -> None:
        """`root`: made where it is missing; its own path may have links.

        `is_trusted`: no stranger's text gets into these files, so reading one does not set the injection guard.
        """
        super().__init__()
        self.foreign = None if is_trusted else Origin.FILE
        self._root = Path(root)

    async def _reading(self, work: Callable[[Tree], T]) -> T:
        return await asyncio.to_thread(self._run, work, is_writer=False)

    async def _writing(self, work: Callable[[Tree], T], contents: Sequence[StoredContent] = ()) -> T:  # noqa: ARG002
        return await asyncio.to_thread(self._run, work, is_writer=True)

    def _run(self, work: Callable[[Tree], T], *, is_writer: bool) -> T:
        with self._opened() as root:
            if is_writer:
                fcntl.flock(root, fcntl.LOCK_EX)  # let go when the root is closed
            return work(DirectoryTree(root))

    @contextmanager
    def _opened(self) -> Iterator[int]:
        with rooted.errors_of("/"):
            self._root.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield handle
        finally:
            os.close(handle)


class DirectoryTree:
    """Entries below an open directory."""

    def __init__(self, root: int) -> None:
        self._root = root

    def root(self) -> Entry:
        """As `Tree.root`."""
        with rooted.errors_of("/"):
            found = rooted.entry_at(self._root, "/.")
        assert found is not None
        return Entry(path="/", kind=found.kind, created_at=found.created_at, modified_at=found.modified_at)

    def find(self, paths: Collection[str]) -> dict[str, Entry]:
        """As `Tree.find`."""
        found: dict[str, Entry] = {}
        for path in paths:
            with rooted.errors_of(path):
                entry = rooted.look(self._root, path)
            if entry is not None:
                found[path] = entry
        return found

    def children(self, path: str, *, limit: int, offset: int = 0) -> list[Entry]:
        """As `Tree.children`. Reads all names, and looks at those of the page."""
        found = []
        with rooted.errors_of(path), rooted.directory(self._root, path) as handle:
            for _, name in rooted.names_in(handle, path)[offset : offset + limit]:
                entry = rooted.listed(handle, joined(path, name))
                found += [entry] if entry is not None else []
        return found

    def is_empty(self, path: str) -> bool:
        """As `Tree.is_empty`."""
        with rooted.errors_of(path), rooted.directory(self._root, path) as handle:
            return not os.listdir(handle)

    def scan(self, prefix: str) -> Iterator[Entry]:
        """As `Tree.scan`."""
        with rooted.errors_of(prefix):
            return iter(rooted.everything(self._root, prefix.rstrip("/") or "/"))

    def open(self, entry: Entry) -> IO[bytes]:
        """As `Tree.open`."""
        with rooted.errors_of(entry.path):
            return rooted.open_file(self._root, entry.path)

    def read_all(self, entries: Sequence[Entry]) -> list[bytes | None]:
        """As `Tree.read_all`."""
        return [self._read(entry) for entry in entries]

    def commit(self, changes: Changes) -> Committed:
        """As `Tree.commit`, one after the other."""
        removed: dict[str, Entry] = {}
        for top in changes.removed:
            removed.update({entry.path: entry for entry in self._at_or_below(top)})
            with rooted.errors_of(top.path):
                rooted.remove(self._root, top)
        removed.update({each.path: each.before for each in changes.planned if each.before is not None})
        made = [self._make(each) for each in changes.planned]
        return Committed(removed=[removed[path] for path in sorted(removed)], entries=made)

    def copy(self, source: Entry, target: str) -> list[Entry]:
        """As `Tree.copy`."""
        made = []
        for entry in self._at_or_below(source):
            planned = Planned(path=moved(entry.path, source.path, target), kind=entry.kind, target=entry.target)
            if entry.kind is not EntryKind.FILE:
                made.append(self._make(planned))
                continue
            with self.open(entry) as file:
                head = rooted.look(self._root, entry.path)
                media_type = head.media_type if head else ""
                planned.content = StoredContent(size=entry.size, media_type=media_type, file=file)
                made.append(self._make(planned))
        return made

    def move(self, source: Entry, target: str) -> tuple[list[Entry], list[Entry]]:
        """As `Tree.move`: one step of the file system."""
        old = self._at_or_below(source)
        with rooted.errors_of(target):
            rooted.rename(self._root, source.path, target)
        return old, [replace(entry, path=moved(entry.path, source.path, target)) for entry in old]

    def info(self) -> WorkspaceInfo:
        """As `Tree.info`; looks at every entry."""
        entries = list(self.scan("/"))
        kinds = [entry.kind for entry in entries]
        return WorkspaceInfo(
            file_count=kinds.count(EntryKind.FILE),
            directory_count=kinds.count(EntryKind.DIRECTORY) + 1,
            byte_count=sum(entry.size for entry in entries if entry.kind is EntryKind.FILE),
            object_count=0,
        )

    def _make(self, planned: Planned) -> Entry:
        with rooted.errors_of(planned.path):
            if planned.kind is EntryKind.DIRECTORY:
                return rooted.make_directory(self._root, planned.path)
            if planned.kind is EntryKind.SYMLINK:
                return rooted.make_link(self._root, planned.path, planned.target)
            assert planned.content is not None
            return rooted.write_file(self._root, planned.path, planned.content)

    def _read(self, entry: Entry) -> bytes | None:
        try:
            with self.open(entry) as file:
                return file.read()
        except FileFailed as error:
            if error.errno == "ENOENT":
                return None
            raise

    def _at_or_below(self, top: Entry) -> list[Entry]:
        inside = self.scan(top.path + "/") if top.kind is EntryKind.DIRECTORY else []
        return [top, *inside]
