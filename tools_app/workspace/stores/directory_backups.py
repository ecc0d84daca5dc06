"""Entries of a directory on the disk as they were before a turn changed them.

The rows are those of workspaces in the database (`backups`), below one row for the directory. A version is a hash of
what stands at a path, so a change by a program of the machine, by which nothing is kept, shows as another hand. What is
about to change is committed before the disk is touched, what came of it afterwards: of a process that dies in between,
the rows do not know what it left, and an undo asks before it touches those files.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final, NamedTuple

from django.db.models import Sum

from tools_app.core.files.paths import chain, parent_of
from tools_app.core.files.workspace import Entry, EntryKind
from tools_app.models import FileBackup, StoredWorkspace
from tools_app.workspace import objects
from tools_app.workspace.conf import workspace_settings
from tools_app.workspace.stores.backups import step_now
from tools_app.workspace.stores.keys import key_of
from tools_app.workspace.stores.tree import PIECE_BYTES, Tree

_INLINE_BYTES: Final = 256 * 1024
_BATCH: Final = 100
_HASHED_BYTES: Final = 6
"""Versions go through JSON as numbers, which are exact up to 53 bits there."""


class EntryState(NamedTuple):
    """An entry of the disk, with the fields of a backup. `version`: `None` for a file that was not read."""

    kind: str
    version: int | None
    size: int = 0
    media_type: str = ""
    target: str = ""
    content: bytes | None = None
    storage_name: str = ""
    is_cut: bool = False


class DirectoryBackups:
    """The backups of one turn for a directory whose lock the caller holds."""

    def __init__(self, turn_id: str, root: str) -> None:
        self._turn_id = turn_id
        self._row, _ = StoredWorkspace.objects.get_or_create(root=root)
        self._step = step_now() or 0

    @contextmanager
    def keeping(self, tree: Tree, paths: Sequence[str]) -> Iterator[None]:
        """Keep what is at and below these paths while the caller changes it. Two statements for a hundred entries."""
        found = _at_and_below(tree, paths)
        room = self._room() if any(each.kind is EntryKind.FILE for each in found) else 0
        before: dict[str, EntryState] = {}
        for entry in found:
            before[entry.path] = state = state_of_entry(tree, entry, room=room, is_kept=True)
            room -= state.size if state.kind == EntryKind.FILE and not state.is_cut else 0
        names = [state.storage_name for state in before.values() if state.storage_name]
        try:
            rows = self._insert({**dict.fromkeys(paths), **before})
        except BaseException:
            objects.discard_unused(names)
            raise
        try:
            yield
        finally:
            self._settle(tree, rows, {*paths, *before})

    def _settle(self, tree: Tree, rows: list[FileBackup], known: set[str]) -> None:
        """Note what is there now, also where nothing was before."""
        after = {entry.path: state_of_entry(tree, entry) for entry in _at_and_below(tree, known)}
        rows += self._insert(dict.fromkeys(path for path in after if path not in known))
        for row in rows:
            left = after.get(row.path)
            row.version_after, row.kind_after = (left.version, left.kind) if left is not None else (0, "")
        FileBackup.objects.bulk_update(rows, ["version_after", "kind_after"], batch_size=_BATCH)

    def _room(self) -> int:
        """Bytes that may still be kept for this turn."""
        limit = workspace_settings.backup_bytes
        if not limit:
            return workspace_settings.file_max_bytes * 1_000
        kept = FileBackup.objects.filter(turn_id=self._turn_id, workspace=self._row, is_cut=False)
        return limit - (kept.aggregate(total=Sum("size"))["total"] or 0)

    def _insert(self, states: "dict[str, EntryState | None]") -> list[FileBackup]:
        """Of a path that this step has changed already, the row that there is."""
        rows = [
            FileBackup(
                workspace=self._row,
                turn_id=self._turn_id,
                step=self._step,
                path=path,
                path_key=key_of(path),
                version_after=None,
                **_columns(state),
            )
            for path, state in states.items()
        ]
        return FileBackup.objects.bulk_create(
            rows,
            batch_size=_BATCH,
            update_conflicts=True,
            unique_fields=["turn_id", "workspace", "path_key", "step"],
            update_fields=["version_after", "kind_after"],
        )


def state_of_entry(tree: Tree, entry: Entry, *, room: int | None = None, is_kept: bool = False) -> EntryState:
    """Look at an entry of the disk. `room`: a file that is larger is not read; `is_kept`: with its content."""
    if entry.kind is EntryKind.DIRECTORY:
        return EntryState(entry.kind.value, 1)
    if entry.kind is EntryKind.SYMLINK:
        return EntryState(
            entry.kind.value, _number(hashlib.sha256(b"link " + entry.target.encode())), target=entry.target
        )
    facts: dict[str, Any] = {"kind": entry.kind.value, "size": entry.size, "media_type": entry.media_type}
    if entry.size > (workspace_settings.file_max_bytes if room is None else room):
        return EntryState(**facts, version=None, is_cut=True)
    with tree.open(entry) as file:
        if not is_kept:
            return EntryState(**facts, version=_hashed(file))
        if entry.size < _INLINE_BYTES:
            content = file.read()
            return EntryState(
                **facts | {"size": len(content)}, version=_number(hashlib.sha256(content)), content=content
            )
        version = _hashed(file)
        file.seek(0)
        return EntryState(**facts, version=version, storage_name=objects.save_object(file, entry.size))


def _at_and_below(tree: Tree, paths: Iterable[str]) -> list[Entry]:
    """Each once, by path."""
    found = tree.find(list(paths))
    for entry in list(found.values()):
        if entry.kind is EntryKind.DIRECTORY and not any(above in found for above in chain(parent_of(entry.path))):
            found.update({each.path: each for each in tree.scan(entry.path + "/")})
    return [found[path] for path in sorted(found)]


def _columns(state: EntryState | None) -> dict[str, Any]:
    if state is None:
        return {"version_before": 0}
    columns = state._asdict()
    return {"version_before": columns.pop("version"), **columns}


def _hashed(file: IO[bytes]) -> int:
    found = hashlib.sha256()
    while piece := file.read(PIECE_BYTES):
        found.update(piece)
    return _number(found)


def _number(found: Any) -> int:
    """A version: never that of a directory or of nothing."""
    return int.from_bytes(found.digest()[:_HASHED_BYTES], "big") + 2
