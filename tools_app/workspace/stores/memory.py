"""A workspace in memory: for tests, for previews, and as the model that the other stores are compared with."""

import io
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import IO, TypeVar

from django.utils import timezone

from tools_app.core.files.failures import failed
from tools_app.core.files.paths import is_within, parent_of
from tools_app.core.files.workspace import BriefEntry, Entry, EntryKind, WorkspaceInfo
from tools_app.workspace.stores.planning import moved, renamed
from tools_app.workspace.stores.tree import Changes, Committed, Planned, StoredContent, Tree
from tools_app.workspace.stores.writes import Writes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Node:
    entry: Entry
    data: bytes = field(default=b"", repr=False)


class MemoryWorkspace(Writes):
    """Keeps everything in this object. May be used by several threads and loops."""

    def __init__(self) -> None:
        super().__init__()
        self._tree = MemoryTree()
        self._lock = threading.RLock()

    async def _reading(self, work: Callable[[Tree], T]) -> T:
        with self._lock:
            return work(self._tree)

    async def _writing(self, work: Callable[[Tree], T], contents: Sequence[StoredContent] = ()) -> T:  # noqa: ARG002
        with self._lock:
            return work(self._tree)


class MemoryTree:
    """Entries in a dictionary."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._created_at = timezone.now()
        self._version = 0

    def root(self) -> Entry:
        """As `Tree.root`."""
        made = self._created_at
        return Entry(path="/", kind=EntryKind.DIRECTORY, created_at=made, modified_at=made)

    def find(self, paths: Collection[str]) -> dict[str, Entry]:
        """As `Tree.find`."""
        return {path: self._nodes[path].entry for path in paths if path in self._nodes}

    def children(self, path: str, *, limit: int, offset: int = 0) -> list[Entry]:
        """As `Tree.children`."""
        found = [node.entry for each, node in self._nodes.items() if parent_of(each) == path]
        return sorted(found, key=lambda entry: (entry.kind.value, entry.name))[offset : offset + limit]

    def is_empty(self, path: str) -> bool:
        """As `Tree.is_empty`."""
        return not self.children(path, limit=1)

    def scan(self, prefix: str) -> Iterator[Entry]:
        """As `Tree.scan`."""
        return iter([self._nodes[path].entry for path in sorted(self._nodes) if path.startswith(prefix)])

    def open(self, entry: BriefEntry | Entry) -> IO[bytes]:
        """As `Tree.open`."""
        if entry.path not in self._nodes:
            raise failed("ENOENT", entry.path)
        return io.BytesIO(self._nodes[entry.path].data)

    def read_all(self, entries: Sequence[BriefEntry | Entry]) -> list[bytes | None]:
        """As `Tree.read_all`."""
        return [self._nodes[entry.path].data if entry.path in self._nodes else None for entry in entries]

    def commit(self, changes: Changes) -> Committed:
        """As `Tree.commit`."""
        now = self._next_instant()
        removed = [entry for top in changes.removed for entry in self._take(top.path)]
        removed += [each.before for each in changes.planned if each.before is not None]
        for each in changes.planned:
            self._nodes[each.path] = _Node(self._entry(each, now), _data(each))
        return Committed(removed=removed, entries=[self._nodes[each.path].entry for each in changes.planned])

    def copy(self, source: Entry, target: str) -> list[Entry]:
        """As `Tree.copy`."""
        now = self._next_instant()
        inside = [node for path, node in sorted(self._nodes.items()) if is_within(path, source.path)]
        for node in inside:
            entry = renamed(node.entry, source.path, target)
            entry = replace(entry, created_at=now, modified_at=now, version=str(self._version))
            self._nodes[entry.path] = _Node(entry, node.data)
        return [self._nodes[moved(node.entry.path, source.path, target)].entry for node in inside]

    def move(self, source: Entry, target: str) -> tuple[list[Entry], list[Entry]]:
        """As `Tree.move`."""
        inside = [node for path, node in sorted(self._nodes.items()) if is_within(path, source.path)]
        old = self._take(source.path)
        new = [renamed(node.entry, source.path, target) for node in inside]
        self._nodes.update({entry.path: _Node(entry, node.data) for entry, node in zip(new, inside, strict=True)})
        return old, new

    def info(self) -> WorkspaceInfo:
        """As `Tree.info`."""
        kinds = [node.entry.kind for node in self._nodes.values()]
        return WorkspaceInfo(
            file_count=kinds.count(EntryKind.FILE),
            directory_count=kinds.count(EntryKind.DIRECTORY) + 1,
            byte_count=sum(len(node.data) for node in self._nodes.values()),
            object_count=0,
        )

    def _take(self, path: str) -> list[Entry]:
        return [self._nodes.pop(each).entry for each in sorted(self._nodes) if is_within(each, path)]

    def _next_instant(self) -> datetime:
        self._version += 1
        return timezone.now()

    def _entry(self, planned: Planned, now: datetime) -> Entry:
        return Entry(
            path=planned.path,
            kind=planned.kind,
            size=0 if planned.kind is EntryKind.DIRECTORY else planned.size,
            media_type=planned.content.media_type if planned.content else "",
            target=planned.target,
            version=str(self._version),
            origin=planned.origin,
            created_at=planned.before.created_at if planned.before else now,
            modified_at=now,
        )


def _data(planned: Planned) -> bytes:
    return planned.content.open().read() if planned.content else b""
