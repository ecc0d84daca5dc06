"""A workspace in a directory of the disk."""

import asyncio
import copy
import fcntl
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, Final, Self, TypeVar

from thinkproject.kernel.aio import db
from tools_app.core.files.failures import failed
from tools_app.core.files.paths import joined
from tools_app.core.files.workspace import BriefEntry, Entry, EntryKind, WorkspaceInfo
from tools_app.core.origins import Origin
from tools_app.errors import FileFailed
from tools_app.workspace.stores import rooted
from tools_app.workspace.stores.directory_backups import DirectoryBackups, EntryState, state_of_entry
from tools_app.workspace.stores.planning import Plan, moved
from tools_app.workspace.stores.tree import Changes, Committed, Planned, StoredContent, Tree
from tools_app.workspace.stores.writes import Writes

T = TypeVar("T")
_WAIT_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.05
_ALL: Final = 1_000_000


class DirectoryWorkspace(Writes):
    """Plain files below a root that no path, link or race leaves.

    Links on the disk are followed within the workspace: `/x` is the root's `x`. Writers of all processes that use this
    class take turns (`flock` of the root); other programs do not, so `expected_version` is only a check for them.
    Several operations are checked before the first is done, and a crash may leave some done. Entries are kept as they
    were before a turn changed them (`in_turn`), those alone that turns change through this class. Media types are
    detected when asked for one entry and not stored; lists have none. Names that workspaces refuse are not listed.
    """

    def __init__(self, root: Path | str, *, is_trusted: bool = False) -> None:
        """`root`: made where it is missing; its own path may have links.

        `is_trusted`: no stranger's text gets into these files, so reading one does not set the injection guard.
        """
        super().__init__()
        self.foreign = None if is_trusted else Origin.FILE
        self._root = Path(root)
        self._turn_id = ""

    @property
    def root(self) -> Path:
        """The directory, its links followed: the name of what is kept of it."""
        return self._root.resolve()

    def in_turn(self, turn_id: str) -> Self:
        """The same directory as a turn works on it: entries are kept as they were before the turn changed them.

        Kept is what goes through this workspace (`tools_app.workspace.stores.directory_backups`), in the database. An
        empty id keeps nothing. Listeners are shared.
        """
        opened = copy.copy(self)
        opened._turn_id = turn_id
        return opened

    def change_now(self, steps: Callable[[Plan], T]) -> T:
        """Plan and carry out in the caller's thread. Errors: `EAGAIN` where another writer does not finish.

        Not part of the caller's transaction, but for what is kept: the disk stays as it is then.
        """

        def work(tree: Tree) -> T:
            plan = Plan(tree)
            result = steps(plan)
            if (changes := plan.changes()) is not None:
                tree.commit(changes)
            return result

        return self._run(work, is_writer=True, is_patient=False)

    def states_at(self, paths: Sequence[str], *, with_content: bool = False) -> dict[str, EntryState]:
        """The entries at these paths, with the contents of short files where asked. Sync; reads each file."""

        def work(tree: Tree) -> dict[str, EntryState]:
            entries = tree.find(paths)
            found = {path: state_of_entry(tree, entry) for path, entry in entries.items()}
            short = [each for each in entries.values() if with_content and each.size <= self.inline_bytes]
            for entry, content in zip(short, tree.read_all(short), strict=True):
                found[entry.path] = found[entry.path]._replace(content=content)
            return found

        return self.read_now(work)

    def paths_in(self, directories: Collection[str]) -> list[str]:
        """The paths of what is directly in these directories. Sync."""

        def work(tree: Tree) -> list[str]:
            return [entry.path for path in directories for entry in tree.children(path, limit=_ALL)]

        return self.read_now(work)

    def read_now(self, work: Callable[[Tree], T]) -> T:
        """Give the entries to work that changes nothing, in the caller's thread."""
        return self._run(work, is_writer=False)

    async def _reading(self, work: Callable[[Tree], T]) -> T:
        return await asyncio.to_thread(self._run, work, is_writer=False)

    async def _writing(self, work: Callable[[Tree], T], contents: Sequence[StoredContent] = ()) -> T:  # noqa: ARG002
        if self._turn_id:
            return await db(lambda: self._run(work, is_writer=True))
        return await asyncio.to_thread(self._run, work, is_writer=True)

    def _run(self, work: Callable[[Tree], T], *, is_writer: bool, is_patient: bool = True) -> T:
        with self._opened() as root:
            if is_writer:
                _lock(root, is_patient=is_patient)  # let go when the root is closed
            if not is_writer or not self._turn_id:
                return work(DirectoryTree(root))
            return work(DirectoryTree(root, DirectoryBackups(self._turn_id, str(self.root))))

    @contextmanager
    def _opened(self) -> Iterator[int]:
        with rooted.errors_of("/"):
            self._root.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield handle
        finally:
            os.close(handle)


def _lock(root: int, *, is_patient: bool) -> None:
    """Wait for other writers. One who holds rows that they may wait for is not patient: they would wait for ever."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            fcntl.flock(root, fcntl.LOCK_EX if is_patient else fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise failed("EAGAIN", "/", "another writer is at work in this directory; try again") from None
            time.sleep(_PAUSE_SECONDS)


class DirectoryTree:
    """Entries below an open directory. `backups`: keep what is changed."""

    def __init__(self, root: int, backups: DirectoryBackups | None = None) -> None:
        self._root = root
        self._backups = backups

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

    def open(self, entry: BriefEntry | Entry) -> IO[bytes]:
        """As `Tree.open`."""
        with rooted.errors_of(entry.path):
            return rooted.open_file(self._root, entry.path)

    def read_all(self, entries: Sequence[BriefEntry | Entry]) -> list[bytes | None]:
        """As `Tree.read_all`."""
        return [self._read(entry) for entry in entries]

    def commit(self, changes: Changes) -> Committed:
        """As `Tree.commit`, one after the other."""
        with self._kept([*(each.path for each in changes.removed), *(each.path for each in changes.planned)]):
            return self._commit(changes)

    def _commit(self, changes: Changes) -> Committed:
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
        with self._kept([target]):
            return self._copy(source, target)

    def _copy(self, source: Entry, target: str) -> list[Entry]:
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
        with self._kept([source.path, target]), rooted.errors_of(target):
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

    def _kept(self, paths: Iterable[str]) -> AbstractContextManager[None]:
        return nullcontext() if self._backups is None else self._backups.keeping(self, sorted(set(paths)))

    def _make(self, planned: Planned) -> Entry:
        with rooted.errors_of(planned.path):
            if planned.kind is EntryKind.DIRECTORY:
                return rooted.make_directory(self._root, planned.path)
            if planned.kind is EntryKind.SYMLINK:
                return rooted.make_link(self._root, planned.path, planned.target)
            assert planned.content is not None
            return rooted.write_file(self._root, planned.path, planned.content)

    def _read(self, entry: BriefEntry | Entry) -> bytes | None:
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
