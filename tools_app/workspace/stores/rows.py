"""The entries of one workspace in the database, as a `Tree`.

Whatever is below a directory is read, removed, copied and moved by one statement over a range of `path_key`.
"""

import io
import itertools
import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import IO, Any, Final

from django.db import models
from django.db.models import F, Q, QuerySet, Value
from django.utils import timezone

from tools_app.core.files.failures import failed
from tools_app.core.files.paths import below, name_of, parent_of
from tools_app.core.files.workspace import BriefEntry, Entry, EntryKind, WorkspaceInfo
from tools_app.core.guard.reach import written_here
from tools_app.core.origins import Origin
from tools_app.models import FileBackup, StoredWorkspace, WorkspaceEntry
from tools_app.workspace import objects
from tools_app.workspace.quotas import check_room
from tools_app.workspace.stores.backups import FileBackups
from tools_app.workspace.stores.inserting import insert_from
from tools_app.workspace.stores.keys import HEAD_CHARS, below_prefix, key_of, relocated
from tools_app.workspace.stores.planning import renamed
from tools_app.workspace.stores.row_search import RowSearch
from tools_app.workspace.stores.tree import OPEN_TRIES, Changes, Committed, Planned

BATCH_KEYS: Final = 500
BATCH_ROWS: Final = 2_000
BATCH_BYTES: Final = 8 * 1024 * 1024
_RANGES: Final = 20
_COLUMNS: Final = ("path", "kind", "size", "media_type", "target", "version", "created_at", "modified_at", "origin")
_KEPT: Final = ("kind", "media_type", "size", "target", "storage_name", "content", "origin")
_REPLACED: Final = (*_KEPT, "version", "modified_at")
_REPLACING: Final = "ON CONFLICT (workspace_id, path_key) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in _REPLACED
)
_log = logging.getLogger(__name__)


class NoWorkspaceYet(Exception):
    """Something is to be written and there is no row yet."""


@dataclass(slots=True)
class _Totals:
    """Counts of entries and bytes that an operation adds, or takes away."""

    files: int = 0
    directories: int = 0
    links: int = 0
    byte_count: int = 0
    objects: int = 0

    def add(self, entry: Entry, object_name: str, sign: int = 1) -> None:
        """Count an entry; `sign` -1 takes it away."""
        self.files += sign * (entry.kind is EntryKind.FILE)
        self.directories += sign * (entry.kind is EntryKind.DIRECTORY)
        self.links += sign * (entry.kind is EntryKind.SYMLINK)
        self.byte_count += sign * (entry.size if entry.kind is EntryKind.FILE else 0)
        self.objects += sign * bool(object_name)

    def store_in(self, row: StoredWorkspace) -> None:
        """Write the totals, if there is room. Errors: `ENOSPC`."""
        entry_count = self.files + self.directories + self.links
        check_room(row.owner_id, byte_count=self.byte_count, entry_count=entry_count)
        row.file_count += self.files
        row.directory_count += self.directories
        row.link_count += self.links
        row.byte_count += self.byte_count
        row.object_count += self.objects
        row.save()


class DatabaseTree:
    """Entries of a workspace whose row its caller has locked, if it is to write. No row: it is empty.

    `turn_id`: the turn that changes it, for which files are kept as they were; empty: they are not.
    """

    def __init__(self, row: StoredWorkspace | None, *, can_write: bool = True, turn_id: str = "") -> None:
        self._row = row
        self._can_write = can_write
        self._turn_id = turn_id
        self.searching = RowSearch(row, self.read_all)

    def root(self) -> Entry:
        """As `Tree.root`."""
        made = self._row.created_at if self._row else timezone.now()
        changed = self._row.modified_at if self._row else made
        return Entry(path="/", kind=EntryKind.DIRECTORY, created_at=made, modified_at=changed)

    def find(self, paths: Collection[str]) -> dict[str, Entry]:
        """As `Tree.find`; one query for each 500 paths."""
        keys = [key_of(path) for path in paths]
        found: dict[str, Entry] = {}
        for start in range(0, len(keys), BATCH_KEYS):
            rows = self._entries().filter(path_key__in=keys[start : start + BATCH_KEYS])
            found.update({row[0]: _entry(row) for row in rows.values_list(*_COLUMNS)})
        return found

    def children(self, path: str, *, limit: int, offset: int = 0) -> list[Entry]:
        """As `Tree.children`; the order is that of an index."""
        rows = self._entries().filter(parent_key=key_of(path)).order_by("parent_key", "kind", "name")
        if offset > BATCH_ROWS:  # what is skipped is counted in the index alone
            first = next(iter(rows.values_list("kind", "name")[offset : offset + 1]), None)
            if first is None:
                return []
            same_kind = Q(kind=first[0], name__gte=first[1])
            rows, offset = rows.filter(same_kind | Q(kind__gt=first[0])), 0
        return [_entry(row) for row in rows.values_list(*_COLUMNS)[offset : offset + limit]]

    def is_empty(self, path: str) -> bool:
        """As `Tree.is_empty`."""
        return not self.children(path, limit=1)

    def scan(self, prefix: str) -> Iterator[Entry]:
        """As `Tree.scan`; one query for each 2 000 entries, without contents."""
        # Keys of long paths have the order of their beginnings only, so each group of these is sorted here.
        for _, group in itertools.groupby(self._in_key_order(prefix), key=lambda entry: entry.path[:HEAD_CHARS]):
            yield from sorted(group, key=lambda entry: entry.path)

    def open(self, entry: BriefEntry | Entry) -> IO[bytes]:
        """As `Tree.open`. A large file whose object is lost reads as empty, which is logged."""
        storage_name = ""
        for _ in range(OPEN_TRIES):
            row = self._entries().filter(path_key=key_of(entry.path)).values_list("storage_name", "content").first()
            if row is None:
                raise failed("ENOENT", entry.path)
            storage_name, content = row
            if not storage_name:
                return io.BytesIO(bytes(content or b""))
            file = objects.open_object(storage_name)
            if file is not None:  # else it may have been replaced since the row was read
                return file
        _log.error("the object of %s is lost: %s", entry.path, storage_name)
        return io.BytesIO()

    def read_all(self, entries: Sequence[BriefEntry | Entry]) -> list[bytes | None]:
        """As `Tree.read_all`; one query for each 500 files, and one more for each that is in storage."""
        keys = [key_of(entry.path) for entry in entries]
        found: dict[str, bytes | None] = {}
        for start in range(0, len(keys), BATCH_KEYS):
            rows = self._entries().filter(path_key__in=keys[start : start + BATCH_KEYS])
            for key, storage_name, content in rows.values_list("path_key", "storage_name", "content"):
                found[key] = None if storage_name else bytes(content or b"")
        missing = object()
        read = [found.get(key, missing) for key in keys]
        return [
            None if data is missing else _whole(self, entry) if data is None else data  # type: ignore[misc]
            for entry, data in zip(entries, read, strict=True)
        ]

    def commit(self, changes: Changes) -> Committed:
        """As `Tree.commit`. Errors: `EPERM` where only reading is allowed, `ENOSPC`."""
        row = self._writable()
        gone = self._gone(changes)
        entries = [_made(row, each) for each in changes.planned]
        delta = _Totals()
        for entry, object_name in gone:
            delta.add(entry, object_name, -1)
        for entry, each in zip(entries, changes.planned, strict=True):
            delta.add(entry, each.object_name)
        old = [entry for entry, _ in gone]
        backups, replaced = self._backups(row), _replaced(changes)
        backups.reserve(old)
        delta.store_in(row)
        backups.keep(_removals(changes.removed))
        for kind, pairs in itertools.groupby(sorted(replaced, key=itemgetter(0)), key=itemgetter(0)):
            backups.keep(_at([before for _, before in pairs]), by=kind)
        for some in _removals(changes.removed):
            self._entries().filter(some).delete()
        _restore(row, [each for each in changes.planned if each.is_restored])
        for batch in _batches(row, [each for each in changes.planned if not each.is_restored]):
            WorkspaceEntry.objects.bulk_create(
                batch, update_conflicts=True, unique_fields=["workspace", "path_key"], update_fields=_REPLACED
            )
        backups.note_new(entries, [before for _, before in replaced])
        objects.forget([name for _, name in gone])
        return Committed(removed=old, entries=entries)

    def copy(self, source: Entry, target: str) -> list[Entry]:
        """As `Tree.copy`: one INSERT from a SELECT. Large files share their object."""
        row = self._writable()
        inside = _at_or_below(source)
        delta = _Totals()
        for entry, object_name in self._with_objects(inside):
            delta.add(entry, object_name)
        delta.store_in(row)
        insert_from(
            self._entries().filter(inside),
            WorkspaceEntry,
            {
                **relocated(source.path, target),
                "workspace_id": F("workspace_id"),
                **{
                    name: F(name)
                    for name in ("kind", "media_type", "size", "target", "storage_name", "content", "origin")
                },
                "version": Value(row.version, models.BigIntegerField()),
                "created_at": Value(row.modified_at, models.DateTimeField()),
                "modified_at": Value(row.modified_at, models.DateTimeField()),
            },
        )
        self._name(target)
        made = [entry for entry, _ in self._with_objects(_at_or_below(replace(source, path=target)))]
        self._backups(row).note_new(made)
        return made

    def move(self, source: Entry, target: str) -> tuple[list[Entry], list[Entry]]:
        """As `Tree.move`: one UPDATE."""
        row = self._writable()
        inside = _at_or_below(source)
        old = [entry for entry, _ in self._with_objects(inside)]
        backups = self._backups(row)
        backups.reserve(old)
        _Totals().store_in(row)
        backups.keep([inside])
        self._entries().filter(inside).update(**relocated(source.path, target))
        self._name(target)
        new = [renamed(entry, source.path, target) for entry in old]
        backups.note_new(new)
        return old, new

    def info(self) -> WorkspaceInfo:
        """As `Tree.info`: the totals are in the row."""
        if self._row is None:
            return WorkspaceInfo(file_count=0, directory_count=1, byte_count=0, object_count=0)
        row = StoredWorkspace.objects.filter(pk=self._row.pk).first() or self._row
        return WorkspaceInfo(
            file_count=row.file_count,
            directory_count=row.directory_count,
            byte_count=row.byte_count,
            object_count=row.object_count,
        )

    def _entries(self) -> QuerySet[WorkspaceEntry]:
        if self._row is None:
            return WorkspaceEntry.objects.none()
        return WorkspaceEntry.objects.filter(workspace_id=self._row.pk)

    def _in_key_order(self, prefix: str) -> Iterator[Entry]:
        rows = self._entries().filter(below_prefix(prefix)).order_by("path_key").values_list(*_COLUMNS)
        last = ""
        while batch := list(rows.filter(path_key__gt=last)[:BATCH_ROWS]):
            yield from (_entry(row) for row in batch)
            last = key_of(batch[-1][0])

    def _writable(self) -> StoredWorkspace:
        if not self._can_write:
            raise failed("EPERM", "/", "this workspace can only be read here")
        if self._row is None:
            raise NoWorkspaceYet
        self._row.version += 1
        self._row.modified_at = timezone.now()
        return self._row

    def _name(self, path: str) -> None:
        """Note whose the new name of an entry is; no statement for one that needs no distrust."""
        origin = written_here()
        if origin is not None:
            self._entries().filter(path_key=key_of(path), origin="").update(origin=origin.value)

    def _backups(self, row: StoredWorkspace) -> FileBackups:
        return FileBackups(self._turn_id, row, self._entries())

    def _gone(self, changes: Changes) -> list[tuple[Entry, str]]:
        """The entries that are removed or replaced, each once, with the names of objects."""
        found = {
            entry.path: (entry, name)
            for some in _removals(_changed(changes))
            for entry, name in self._with_objects(some)
        }
        return [found[path] for path in sorted(found)]

    def _with_objects(self, some: Q) -> list[tuple[Entry, str]]:
        rows = self._entries().filter(some).order_by("path_key").values_list(*_COLUMNS, "storage_name")
        return [(_entry(row), row[-1]) for row in rows]


def _whole(tree: DatabaseTree, entry: BriefEntry | Entry) -> bytes:
    with tree.open(entry) as file:
        return file.read()


def _restore(row: StoredWorkspace, planned: Sequence[Planned]) -> None:
    """Have entries that are there be what backups have, within the database; one statement for each 500."""
    ids = [each.content.backup_id for each in planned if each.content is not None]
    same = ("workspace_id", "path", "path_key", *_KEPT)
    values: dict[str, Any] = {name: F(name) for name in same}
    values |= {name: Value("", models.CharField()) for name in ("parent_key", "name")}  # stay as they are
    values["version"] = Value(row.version, models.BigIntegerField())
    values |= {name: Value(row.modified_at, models.DateTimeField()) for name in ("created_at", "modified_at")}
    for start in range(0, len(ids), BATCH_KEYS):
        rows = FileBackup.objects.filter(pk__in=ids[start : start + BATCH_KEYS])
        insert_from(rows, WorkspaceEntry, values, on_conflict=_REPLACING)


def _made(row: StoredWorkspace, planned: Planned) -> Entry:
    """The entry that is made."""
    return Entry(
        path=planned.path,
        kind=planned.kind,
        size=planned.size,
        media_type=planned.content.media_type if planned.content else "",
        target=planned.target,
        version=str(row.version) if planned.kind is not EntryKind.DIRECTORY else "",
        origin=planned.origin,
        created_at=planned.before.created_at if planned.before else row.modified_at,
        modified_at=row.modified_at,
    )


def _row(row: StoredWorkspace, planned: Planned) -> WorkspaceEntry:
    """Its row, with the content that it has in itself."""
    content = planned.content
    return WorkspaceEntry(
        workspace_id=row.pk,
        path=planned.path,
        path_key=key_of(planned.path),
        parent_key=key_of(parent_of(planned.path)),
        name=name_of(planned.path),
        kind=planned.kind.value,
        media_type=content.media_type if content else "",
        size=planned.size,
        version=row.version,
        target=planned.target,
        storage_name=planned.object_name,
        content=content.open().read() if content is not None and not planned.object_name else None,
        origin=planned.origin.value if planned.origin else "",
        created_at=planned.before.created_at if planned.before else row.modified_at,
        modified_at=row.modified_at,
    )


def _at_or_below(source: Entry) -> Q:
    at = Q(path_key=key_of(source.path))
    return at | below_prefix(below(source.path)) if source.kind is EntryKind.DIRECTORY else at


def _changed(changes: Changes) -> list[Entry]:
    """The entries that are removed, without what is below them, and those that are replaced."""
    return [*changes.removed, *(before for _, before in _replaced(changes))]


def _replaced(changes: Changes) -> list[tuple[EntryKind, Entry]]:
    """The entries that are replaced, each with the kind of what comes there."""
    return [(each.kind, before) for each in changes.planned if (before := each.before) is not None]


def _removals(entries: Sequence[Entry]) -> Iterator[Q]:
    """Conditions that select these entries and all below them, for few statements."""
    outermost: list[Entry] = []
    inside = ""
    for entry in sorted(entries, key=lambda entry: f"{entry.path}/"):
        if not inside or not entry.path.startswith(inside):
            outermost.append(entry)
            inside = below(entry.path) if entry.kind is EntryKind.DIRECTORY else inside
    return itertools.chain(_at(outermost), _below(outermost))


def _at(entries: Sequence[Entry]) -> Iterator[Q]:
    keys = [key_of(entry.path) for entry in entries]
    for start in range(0, len(keys), BATCH_KEYS):
        yield Q(path_key__in=keys[start : start + BATCH_KEYS])


def _below(entries: Sequence[Entry]) -> Iterator[Q]:
    ranges = [below_prefix(below(entry.path)) for entry in entries if entry.kind is EntryKind.DIRECTORY]
    for start in range(0, len(ranges), _RANGES):
        some = Q()
        for each in ranges[start : start + _RANGES]:
            some |= each
        yield some


def _batches(row: StoredWorkspace, planned: Sequence[Planned]) -> Iterator[list[WorkspaceEntry]]:
    """Rows with their contents for one statement each: not too many, and not too many bytes."""
    batch: list[WorkspaceEntry] = []
    size = 0
    for each in planned:
        weight = each.size if each.content and not each.object_name else 0
        if batch and (len(batch) >= BATCH_KEYS or size + weight > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(_row(row, each))
        size += weight
    if batch:
        yield batch


def _entry(row: Sequence[Any]) -> Entry:
    path, kind, size, media_type, target, version, created_at, modified_at, origin = row[: len(_COLUMNS)]
    return Entry(
        path=path,
        kind=EntryKind(kind),
        size=size,
        media_type=media_type,
        target=target,
        version=str(version) if kind != EntryKind.DIRECTORY else "",
        origin=Origin(origin) if origin else None,
        created_at=created_at,
        modified_at=modified_at,
    )
