"""Undo what turns changed in workspaces: their entries as they were before, put back at once.

Nothing is overwritten that another hand has changed: such a file is a conflict, until a person chooses. What an undo
replaces is kept like what a turn replaces, under the undo's own id, so to redo is to undo that.
"""

import io
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Final, Literal, NamedTuple, TypeAlias

from django.db.models import Q

from tools_app.core.files.failures import failed
from tools_app.core.files.paths import chain
from tools_app.core.files.workspace import EntryKind
from tools_app.core.guard.reach import written_as
from tools_app.core.origins import Origin
from tools_app.errors import FileConflict, FileFailed
from tools_app.models import FileBackup, StoredWorkspace, WorkspaceEntry
from tools_app.workspace import objects
from tools_app.workspace.stores.database import DatabaseWorkspace
from tools_app.workspace.stores.directory import DirectoryWorkspace
from tools_app.workspace.stores.planning import PathPlace, Plan
from tools_app.workspace.stores.tree import StoredContent
from tools_app.workspace.turn_files import FILE_KINDS, ChangedFile, present_at, rows_of, state_of

KEEPING: Final = (DatabaseWorkspace, DirectoryWorkspace)
"""Workspaces that keep what turns change; of others (a storage, memory) only messages can be taken back."""

Hindrance = Literal["", "changed", "too_large", "no_access"]
"""Why a file does not become what it was: another hand changed it, it was too large to be kept, or it may not be
written by who asks."""

_BATCH: Final = 500
_BATCH_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoable:
    """An entry that changed, with what becomes of it. `kind`: of what comes back; empty: it goes.

    `version`: of what is there now, 0: nothing. `hindrance`: of an entry that stays as it is.
    """

    id: int  # of its first backup
    workspace_id: str
    path: str
    kind: str
    kind_now: str
    size: int
    version: int
    hindrance: Hindrance = ""

    @property
    def is_file(self) -> bool:
        """Whether it is a file or a link, or was one."""
        return self.kind in FILE_KINDS or self.kind_now in FILE_KINDS

    @property
    def fate(self) -> Literal["created", "updated", "deleted"]:
        """The effect of an undo on it."""
        return "deleted" if not self.kind else "created" if not self.kind_now else "updated"


class _Kept(NamedTuple):
    """A backup without its content: of thousands at a time, so plain values."""

    pk: int
    workspace_id: str
    path: str
    path_key: str
    kind: str
    media_type: str
    size: int
    target: str
    storage_name: str
    origin: str
    is_cut: bool
    version_before: int | None
    version_after: int | None
    kind_after: str
    workspace__root: str  # of a directory on the disk

    @property
    def place(self) -> "_Place":
        return self.workspace_id, self.path_key


_Place: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class _Span:
    """The changes of one path: from the state before the first to what the last one left."""

    first: _Kept
    last: _Kept
    ids: set[int]
    is_broken: bool = False  # another hand was in between


def undoable(some: Q, *, may_write: Q) -> list[Undoable]:
    """The entries that an undo of this part of the backups is about, by path; those that are as they were are left out.

    `may_write`: condition of the workspaces that may be written to. Three queries for each workspace, and two.
    """
    return [each for each, _ in _found(some, may_write)]


def undo_files(
    some: Q, *, undo_id: str, may_write: Q, choices: Mapping[int, int] | None = None
) -> tuple[list[Undoable], list[Undoable]]:
    """Put entries back as they were; returns what was done and what was left, with its hindrance.

    `choices`: ids of conflicts to put back all the same, each with the version that was seen; another one stays a
    conflict. Durability: all within the caller's transaction. Errors: `FileFailed` with `ENOSPC`.
    """
    ids = FileBackup.objects.filter(some).order_by("workspace_id").values_list("workspace_id", flat=True).distinct()
    held = StoredWorkspace.objects.select_for_update(no_key=True).filter(pk__in=list(ids)).order_by("pk")
    locked = [row.pk for row in held]
    wanted: dict[str, list[tuple[Undoable, _Kept]]] = {workspace_id: [] for workspace_id in locked}
    left: list[Undoable] = []
    for each, kept in _found(some, may_write):
        is_chosen = each.hindrance == "changed" and (choices or {}).get(each.id) == each.version
        if each.hindrance and not is_chosen:
            left.append(each)
        else:
            wanted[each.workspace_id].append((each, kept))
    done: list[Undoable] = []
    for own in wanted.values():
        if own:
            workspace = _opened(own[0][1])
            blocked = workspace.in_turn(undo_id).change_now(partial(_put_back, own, workspace))
            left += blocked
            stays = {each.id for each in blocked}
            done += [each for each, _ in own if each.id not in stays]
    return sorted(done, key=_by_path), left


def differences_of(files: Sequence[Undoable]) -> list[ChangedFile]:
    """For each of these files what is there now, beside what would come back. Contents of short files alone."""
    rows = rows_of([each.id for each in files])
    here = present_at(list(rows.values()))
    return [
        ChangedFile(
            path=each.path,
            before=state_of(now) if (now := here.get((row.workspace_id, row.path_key))) is not None else None,
            after=state_of(row),
        )
        for each in files
        if (row := rows[each.id])
    ]


def _by_path(each: Undoable) -> tuple[str, str]:
    return each.path, each.workspace_id


def _found(some: Q, may_write: Q) -> list[tuple[Undoable, _Kept]]:
    """The entries with their first backups, by path."""
    spans = _spans(some)
    workspaces = {span.first.workspace_id for span in spans.values()}
    writable = set(StoredWorkspace.objects.filter(may_write, pk__in=workspaces).values_list("pk", flat=True))
    present: dict[_Place, tuple[int | None, str]] = {}
    for root in {span.first.workspace__root for span in spans.values()} - {""}:
        own = [span.first for span in spans.values() if span.first.workspace__root == root]
        states = DirectoryWorkspace(root).states_at([row.path for row in own])
        present.update(
            {row.place: (state.version, state.kind) for row in own if (state := states.get(row.path)) is not None}
        )
    for workspace_id in workspaces:
        keys = FileBackup.objects.filter(some, workspace_id=workspace_id).values("path_key")
        at_paths = Q(workspace_id=workspace_id, path_key__in=keys)
        _find_others(spans, at_paths)
        here = WorkspaceEntry.objects.filter(at_paths).values_list("path_key", "version", "kind")
        present.update({(workspace_id, key): (version, kind) for key, version, kind in here.iterator()})
    found = ((_undoable(span, present.get(place), writable), span.first) for place, span in spans.items())
    made = [(each, kept) for each, kept in found if each is not None]
    return sorted(made, key=lambda pair: _by_path(pair[0]))


def _spans(some: Q) -> dict[_Place, _Span]:
    spans: dict[_Place, _Span] = {}
    rows = FileBackup.objects.filter(some).order_by("pk").values_list(*_Kept._fields)
    for row in map(_Kept._make, rows.iterator()):
        span = spans.get(row.place)
        if span is None:
            is_known = row.version_before is not None and row.version_after is not None
            spans[row.place] = _Span(row, row, {row.pk}, is_broken=not is_known)
        else:
            span.is_broken |= row.version_before != span.last.version_after
            span.last = row
            span.ids.add(row.pk)
    return spans


def _find_others(spans: Mapping[_Place, _Span], at_paths: Q) -> None:
    """Mark the paths in whose history another hand appears since."""
    since = min(span.first.pk for span in spans.values())
    rows = FileBackup.objects.filter(at_paths, pk__gt=since).values_list("pk", "workspace_id", "path_key")
    for pk, workspace_id, path_key in rows.iterator():
        span = spans[workspace_id, path_key]
        span.is_broken |= pk > span.first.pk and pk not in span.ids


def _undoable(span: _Span, here: tuple[int | None, str] | None, writable: set[str]) -> Undoable | None:
    """`here`: version and kind of what is there."""
    first, last = span.first, span.last
    version, kind_now = here or (0, "")
    is_of_directories = {first.kind, last.kind_after, kind_now} <= {"", EntryKind.DIRECTORY.value}
    if is_of_directories:
        is_same, is_other = first.kind == kind_now, False
    else:
        is_same = version == first.version_before and kind_now == first.kind
        is_other = span.is_broken or version != last.version_after
    if is_same:
        return None
    hindrance: Hindrance = (
        "no_access"
        if first.workspace_id not in writable
        else "too_large"
        if first.is_cut
        else "changed"
        if is_other
        else ""
    )
    return Undoable(
        id=first.pk,
        workspace_id=first.workspace_id,
        path=first.path,
        kind=first.kind,
        kind_now=kind_now,
        size=first.size,
        version=version or 0,
        hindrance=hindrance,
    )


def _opened(row: _Kept) -> DatabaseWorkspace | DirectoryWorkspace:
    root = row.workspace__root
    return DirectoryWorkspace(root) if root else DatabaseWorkspace(row.workspace_id)


def _put_back(
    files: Sequence[tuple[Undoable, _Kept]], workspace: DatabaseWorkspace | DirectoryWorkspace, plan: Plan
) -> list[Undoable]:
    """Plan it: what goes from below, then what comes from above. Returns what is in the way of others and stays."""
    contents = _Contents([kept for _, kept in files if kept.kind == EntryKind.FILE and not kept.storage_name])
    plan.prefetch([each.path for each, _ in files])
    blocked: list[Undoable] = []
    going = {kept.path: kept for each, kept in files if each.kind_now and each.kind_now != each.kind}
    directories = {each.path for each, _ in files if each.kind_now == EntryKind.DIRECTORY}
    inside = (
        workspace.paths_in(going.keys() & directories)
        if isinstance(workspace, DirectoryWorkspace)
        else _paths_inside(going)
    )
    for path in sorted(going.keys() - _holding_others(going, inside)):
        plan.remove(plan.resolve(path, follow=False))
    for each, kept in sorted(files, key=lambda pair: pair[0].path):
        if each.kind:
            try:
                _bring_back(plan, kept, contents)
            except (FileFailed, FileConflict):
                blocked.append(each)
    return blocked


def _holding_others(going: Mapping[str, _Kept], inside: Iterable[str]) -> set[str]:
    """The directories among these that hold what others made, at any depth: they stay."""
    found: set[str] = set()
    for path in inside:
        if path not in going:
            found.update(each for each in chain(path) if each in going)
    return found


def _paths_inside(going: Mapping[str, _Kept]) -> Iterator[str]:
    for workspace_id, keys in _in_batches(list(going.values())):
        inside = WorkspaceEntry.objects.filter(workspace_id=workspace_id, parent_key__in=keys)
        yield from inside.values_list("path", flat=True).iterator()


def _in_batches(rows: Sequence[_Kept]) -> Iterator[tuple[str, list[str]]]:
    """Keys of these paths, which are in one workspace, some at a time."""
    for start in range(0, len(rows), _BATCH):
        yield rows[0].workspace_id, [row.path_key for row in rows[start : start + _BATCH]]


def _bring_back(plan: Plan, row: _Kept, contents: "_Contents") -> None:
    place: PathPlace = plan.resolve(row.path, follow=False)
    if place.path != row.path:
        raise failed("ELOOP", row.path)  # a link leads elsewhere by now
    origin = Origin(row.origin) if row.origin else None
    with written_as(origin):
        if row.kind == EntryKind.DIRECTORY:
            plan.make_directory(row.path, recursive=True)
        elif row.kind == EntryKind.SYMLINK:
            plan.link(row.path, row.target, replaces=True)
        else:
            content = StoredContent(size=row.size, media_type=row.media_type, origin=origin)
            content.object_name, content.backup_id = row.storage_name, row.pk
            content.source = partial(_stored, row) if row.storage_name else partial(contents.open, row.pk)
            plan.put(row.path, content)


def _stored(row: _Kept) -> IO[bytes]:
    """The bytes of a file in storage. Errors: `ENOENT` where they are gone."""
    found = objects.open_object(row.storage_name)
    if found is None:
        raise failed("ENOENT", row.path)
    return found


class _Contents:
    """Contents of backups, read some at a time in the order of their paths, as they are written."""

    def __init__(self, rows: Sequence[_Kept]) -> None:
        self._left = deque((row.pk, row.size) for row in sorted(rows, key=lambda row: row.path))
        self._held: dict[int, bytes] = {}

    def open(self, pk: int) -> IO[bytes]:
        """The bytes of one; each is asked for once."""
        if pk not in self._held:
            self._read(pk)
        return io.BytesIO(self._held.pop(pk))

    def _read(self, wanted: int) -> None:
        ids, room = {wanted}, _BATCH_BYTES
        while self._left and len(ids) < _BATCH and room > 0:
            pk, size = self._left.popleft()
            ids.add(pk)
            room -= size
        rows = FileBackup.objects.filter(pk__in=ids).values_list("pk", "content")
        self._held.update({pk: bytes(content or b"") for pk, content in rows})
