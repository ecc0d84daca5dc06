"""A workspace in any Django storage: a folder of files, a bucket, memory."""

import asyncio
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import IO, Final, TypeVar, cast

from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage
from django.utils import timezone

from thinkproject.kernel.ids import new_id
from tools_app.core.files.failures import failed
from tools_app.core.files.paths import below, chain, name_of, parent_of
from tools_app.core.files.workspace import BriefEntry, Entry, EntryKind, WorkspaceInfo
from tools_app.core.origins import Origin
from tools_app.errors import FileFailed
from tools_app.workspace.stores.object_names import StoredObject, component, object_name, parse
from tools_app.workspace.stores.planning import moved
from tools_app.workspace.stores.tree import OPEN_TRIES, Changes, Committed, Planned, StoredContent, Tree
from tools_app.workspace.stores.writes import Writes

T = TypeVar("T")
_locks: "weakref.WeakKeyDictionary[Storage, threading.RLock]" = weakref.WeakKeyDictionary()
_guard: Final = threading.Lock()


class StorageWorkspace(Writes):
    """Objects below a prefix of a storage, whose names are read as entries (`object_names`).

    Storages have no locks and no transactions: writers of one process take turns, of writers in several the last wins,
    and a crash may leave some of several operations done. A file itself is replaced at once. Each operation lists the
    folders on its path. Names have fewer bytes than elsewhere, about 160 (`ENAMETOOLONG`); what it holds are objects,
    so `WorkspaceInfo.object_count` is the number of files.
    """

    def __init__(self, storage: Storage, prefix: str, *, is_trusted: bool = False) -> None:
        """`prefix`: a folder of the storage that nothing else writes to.

        `is_trusted`: no stranger's text gets into these files, so reading one does not set the injection guard.
        """
        super().__init__()
        self.foreign = None if is_trusted else Origin.FILE
        self._storage = storage
        self._prefix = prefix.strip("/")
        with _guard:
            self._lock = _locks.setdefault(storage, threading.RLock())

    async def _reading(self, work: Callable[[Tree], T]) -> T:
        return await asyncio.to_thread(lambda: work(StorageTree(self._storage, self._prefix)))

    async def _writing(self, work: Callable[[Tree], T], contents: Sequence[StoredContent] = ()) -> T:  # noqa: ARG002
        def locked() -> T:
            with self._lock:
                return work(StorageTree(self._storage, self._prefix))

        return await asyncio.to_thread(locked)


class _Listing:
    """The objects by directory and path, those of one path oldest first. Remembered for one operation."""

    def __init__(self, storage: Storage, prefix: str) -> None:
        self._storage = storage
        self._prefix = prefix
        self._listed: dict[str, dict[str, list[StoredObject]]] = {}

    def inside(self, path: str) -> dict[str, list[StoredObject]]:
        """The objects in a directory."""
        if path not in self._listed:
            folder = self.folder(path)
            try:
                names = self._storage.listdir(folder)[1]
            except (FileNotFoundError, NotADirectoryError):
                names = []
            found: dict[str, list[StoredObject]] = {}
            for each in sorted(filter(None, (parse(path, folder, name) for name in names)), key=lambda each: each.id):
                found.setdefault(each.path, []).append(each)
            self._listed[path] = found
        return self._listed[path]

    def latest(self, path: str) -> StoredObject | None:
        """The newest object of a path."""
        objects = self.inside(parent_of(path)).get(path)
        return objects[-1] if objects else None

    def latest_inside(self, path: str) -> list[StoredObject]:
        """The newest object of each path in a directory."""
        return [objects[-1] for objects in self.inside(path).values()]

    def forget(self, path: str) -> None:
        """List a directory anew when it is asked for again."""
        self._listed.pop(path, None)

    def folder(self, path: str) -> str:
        """The folder of the storage that a directory is."""
        return "/".join([self._prefix, *(component(name_of(each)) for each in chain(path))])


class StorageTree:
    """Entries read from names of objects."""

    def __init__(self, storage: Storage, prefix: str) -> None:
        self._storage = storage
        self._objects = _Listing(storage, prefix)

    def root(self) -> Entry:
        """As `Tree.root`. Nothing says when it was made."""
        now = timezone.now()
        return Entry(path="/", kind=EntryKind.DIRECTORY, created_at=now, modified_at=now)

    def find(self, paths: Collection[str]) -> dict[str, Entry]:
        """As `Tree.find`."""
        return {path: self._entry(found) for path in paths if (found := self._objects.latest(path)) is not None}

    def children(self, path: str, *, limit: int, offset: int = 0) -> list[Entry]:
        """As `Tree.children`. Lists the whole folder."""
        found = sorted(self._objects.latest_inside(path), key=lambda each: (each.kind.value, name_of(each.path)))
        return [self._entry(each) for each in found[offset : offset + limit]]

    def is_empty(self, path: str) -> bool:
        """As `Tree.is_empty`."""
        return not self.children(path, limit=1)

    def scan(self, prefix: str) -> Iterator[Entry]:
        """As `Tree.scan`."""
        found: list[StoredObject] = []
        waiting = [prefix.rstrip("/") or "/"]
        while waiting:
            latest = self._objects.latest_inside(waiting.pop())
            found += latest
            waiting += [each.path for each in latest if each.kind is EntryKind.DIRECTORY]
        return (self._entry(each) for each in sorted(found, key=lambda each: each.path))

    def open(self, entry: BriefEntry | Entry) -> IO[bytes]:
        """As `Tree.open`."""
        for _ in range(OPEN_TRIES):
            found = self._objects.latest(entry.path)
            if found is None or found.kind is not EntryKind.FILE:
                break
            try:
                return cast("IO[bytes]", self._storage.open(found.object_name, "rb"))
            except FileNotFoundError:  # it was replaced after it was listed
                self._objects.forget(parent_of(entry.path))
        raise failed("ENOENT", entry.path)

    def read_all(self, entries: Sequence[BriefEntry | Entry]) -> list[bytes | None]:
        """As `Tree.read_all`."""
        return [self._read(entry) for entry in entries]

    def commit(self, changes: Changes) -> Committed:
        """As `Tree.commit`, one after the other."""
        removed: dict[str, Entry] = {}
        for top in changes.removed:
            removed.update({entry.path: entry for entry in self._remove(top)})
        removed.update({each.path: each.before for each in changes.planned if each.before is not None})
        made = [self._save(each) for each in changes.planned]
        return Committed(removed=[removed[path] for path in sorted(removed)], entries=made)

    def copy(self, source: Entry, target: str) -> list[Entry]:
        """As `Tree.copy`."""
        return [self._copy(entry, moved(entry.path, source.path, target)) for entry in self._at_or_below(source)]

    def move(self, source: Entry, target: str) -> tuple[list[Entry], list[Entry]]:
        """As `Tree.move`: copies, which keep their versions, and removes."""
        inside = self._at_or_below(source)
        made = [self._copy(each, moved(each.path, source.path, target), keeps_id=True) for each in inside]
        return self._remove(source), made

    def info(self) -> WorkspaceInfo:
        """As `Tree.info`; looks at every entry."""
        entries = list(self.scan("/"))
        kinds = [entry.kind for entry in entries]
        return WorkspaceInfo(
            file_count=kinds.count(EntryKind.FILE),
            directory_count=kinds.count(EntryKind.DIRECTORY) + 1,
            byte_count=sum(entry.size for entry in entries if entry.kind is EntryKind.FILE),
            object_count=kinds.count(EntryKind.FILE),
        )

    def _entry(self, found: StoredObject) -> Entry:
        if found.kind is not EntryKind.SYMLINK:
            return found.entry()
        try:
            with self._storage.open(found.object_name, "rb") as file:
                return found.entry(file.read().decode(errors="replace"))
        except FileNotFoundError:
            return found.entry("?")  # it was removed after it was listed

    def _read(self, entry: BriefEntry | Entry) -> bytes | None:
        try:
            with self.open(entry) as file:
                return file.read()
        except FileFailed:
            return None

    def _save(self, planned: Planned, object_id: str = "") -> Entry:
        """Save an object, then delete those that it replaces."""
        path, content = planned.path, planned.content
        folder = self._objects.folder(parent_of(path))
        siblings = self._objects.inside(parent_of(path))
        older = siblings.get(path, [])
        media_type = content.media_type if content else ""
        size = 0 if planned.kind is EntryKind.DIRECTORY else planned.size
        name = object_name(name_of(path), planned.kind, object_id or new_id("obj"), size, media_type)
        file = File(content.open()) if content else ContentFile(planned.target.encode())
        saved = self._storage.save(f"{folder}/{name}", file)
        made = parse(parent_of(path), folder, saved.rpartition("/")[2])
        if made is None:
            raise failed("EIO", path, "the storage has changed the name of an object")
        siblings[path] = [made]
        for each in older:
            self._storage.delete(each.object_name)
        return made.entry(planned.target)

    def _copy(self, entry: Entry, path: str, *, keeps_id: bool = False) -> Entry:
        planned = Planned(path=path, kind=entry.kind, target=entry.target)
        object_id = entry.version if keeps_id else ""
        if entry.kind is not EntryKind.FILE:
            return self._save(planned, object_id)
        with self.open(entry) as file:
            planned.content = StoredContent(size=entry.size, media_type=entry.media_type, file=file)
            return self._save(planned, object_id)

    def _remove(self, top: Entry) -> list[Entry]:
        """Remove what is below first and a directory last: one that is made anew has to be empty."""
        inside = self._at_or_below(top)
        for entry in reversed(inside):
            for each in self._objects.inside(parent_of(entry.path)).pop(entry.path, []):
                self._storage.delete(each.object_name)
            self._objects.forget(entry.path)
        return inside

    def _at_or_below(self, top: Entry) -> list[Entry]:
        return [top, *(self.scan(below(top.path)) if top.kind is EntryKind.DIRECTORY else [])]
