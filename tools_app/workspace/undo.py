"""Undo what turns changed in workspaces: their entries as they were before, put back at once.

Nothing is overwritten that another hand has changed: such a file is a conflict, until a person chooses. What an undo
replaces is kept like what a turn replaces, under the undo's own id, so to redo is to undo that.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, Final, Literal

from django.db.models import Q

from tools_app.core.files.failures import failed
from tools_app.core.files.workspace import EntryKind
from tools_app.core.guard.reach import written_as
from tools_app.core.origins import Origin
from tools_app.errors import FileConflict, FileFailed
from tools_app.models import FileBackup, StoredWorkspace, WorkspaceEntry
from tools_app.workspace.stores.database import DatabaseWorkspace
from tools_app.workspace.stores.planning import PathPlace, Plan
from tools_app.workspace.stores.tree import StoredContent
from tools_app.workspace.turn_files import FILE_KINDS, ChangedFile, state_of

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


@dataclass(slots=True)
class _Span:
    """The changes of one path: from the state before the first to what the last one left."""

    first: FileBackup
    last: FileBackup
    ids: set[int]
    is_broken: bool = False  # another hand was in between


def undoable(some: Q, *, may_write: Q) -> list[Undoable]:
    """The entries that an undo of this part of the backups is about, by path; those that are as they were are left out.

    `may_write`: condition of the workspaces that may be written to. The number of queries follows that of the entries.
    """
    spans = _spans(some)
    _find_others(spans)
    present = _present(spans)
    writable = set(
        StoredWorkspace.objects.filter(may_write, pk__in={span.first.workspace_id for span in spans}).values_list(
            "pk", flat=True
        )
    )
    found = [_undoable(span, present.get(_place(span.first)), writable) for span in spans]
    return sorted((each for each in found if each is not None), key=lambda each: (each.path, each.workspace_id))


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
    done: list[Undoable] = []
    left: list[Undoable] = []
    for each in undoable(some, may_write=may_write):
        is_chosen = each.hindrance == "changed" and (choices or {}).get(each.id) == each.version
        (done if not each.hindrance or is_chosen else left).append(each)
    for workspace_id in locked:
        own = [each for each in done if each.workspace_id == workspace_id]
        if own:
            workspace = DatabaseWorkspace(workspace_id).in_turn(undo_id)
            blocked = workspace.change_now(partial(_put_back, own))
            left += blocked
            stays = {each.id for each in blocked}
            done = [each for each in done if each.id not in stays]
    return done, left


def differences_of(files: Sequence[Undoable]) -> list[ChangedFile]:
    """For each of these files what is there now, beside what would come back. Contents of short files alone."""
    rows = {row.pk: row for row in _in_batches([each.id for each in files])}
    entries = WorkspaceEntry.objects
    found: list[ChangedFile] = []
    for each in files:
        row = rows[each.id]
        here = entries.filter(workspace_id=each.workspace_id, path_key=row.path_key).defer("content").first()
        found.append(ChangedFile(path=each.path, before=None if here is None else state_of(here), after=state_of(row)))
    return found


def _place(row: FileBackup) -> tuple[str, str]:
    return row.workspace_id, row.path_key


def _spans(some: Q) -> list[_Span]:
    spans: dict[tuple[str, str], _Span] = {}
    for row in FileBackup.objects.filter(some).order_by("pk").defer("content").iterator():
        span = spans.get(_place(row))
        if span is None:
            is_known = row.version_before is not None and row.version_after is not None
            spans[_place(row)] = _Span(row, row, {row.pk}, is_broken=not is_known)
        else:
            span.is_broken |= row.version_before != span.last.version_after
            span.last = row
            span.ids.add(row.pk)
    return list(spans.values())


def _find_others(spans: Sequence[_Span]) -> None:
    """Mark the paths in whose history another hand appears since."""
    for batch, paths in _paths(spans):
        rows = FileBackup.objects.filter(paths, pk__gt=min(span.first.pk for span in batch.values()))
        for pk, workspace_id, path_key in rows.values_list("pk", "workspace_id", "path_key"):
            span = batch[workspace_id, path_key]
            span.is_broken |= pk > span.first.pk and pk not in span.ids


def _present(spans: Sequence[_Span]) -> dict[tuple[str, str], WorkspaceEntry]:
    found: dict[tuple[str, str], WorkspaceEntry] = {}
    for _, paths in _paths(spans):
        for row in WorkspaceEntry.objects.filter(paths).defer("content"):
            found[row.workspace_id, row.path_key] = row
    return found


def _paths(spans: Sequence[_Span]) -> "Iterable[tuple[dict[tuple[str, str], _Span], Q]]":
    """The spans in batches, each with a condition of what is at their paths."""
    for start in range(0, len(spans), _BATCH):
        batch = {_place(span.first): span for span in spans[start : start + _BATCH]}
        some = Q(pk__in=[])
        for workspace_id in {workspace_id for workspace_id, _ in batch}:
            keys = [path_key for workspace, path_key in batch if workspace == workspace_id]
            some |= Q(workspace_id=workspace_id, path_key__in=keys)
        yield batch, some


def _undoable(span: _Span, here: WorkspaceEntry | None, writable: set[str]) -> Undoable | None:
    first, last = span.first, span.last
    version, kind_now = (here.version, here.kind) if here is not None else (0, "")
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
        version=version,
        hindrance=hindrance,
    )


def _put_back(files: Sequence[Undoable], plan: Plan) -> list[Undoable]:
    """Plan it: what goes from below, then what comes from above. Returns what is in the way of others and stays."""
    rows = {row.pk: row for row in _in_batches([each.id for each in files if each.kind])}
    contents = _Contents([row for row in rows.values() if row.kind == EntryKind.FILE and not row.storage_name])
    plan.prefetch([each.path for each in files])
    blocked: list[Undoable] = []
    going = [each for each in files if each.kind_now and each.kind_now != each.kind]
    for each in sorted(going, key=lambda each: each.path, reverse=True):
        place = plan.resolve(each.path, follow=False)
        with suppress(FileFailed):  # a directory that holds what others made stays
            plan.check_empty(place)
            plan.remove(place)
    for each in sorted(files, key=lambda each: each.path):
        if each.kind:
            try:
                _bring_back(plan, rows[each.id], contents)
            except (FileFailed, FileConflict):
                blocked.append(each)
    return blocked


def _bring_back(plan: Plan, row: FileBackup, contents: "_Contents") -> None:
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
            content.object_name = row.storage_name
            content.source = partial(contents.open, row.pk)
            plan.put(row.path, content)


def _in_batches(ids: Sequence[int]) -> Iterable[FileBackup]:
    for start in range(0, len(ids), _BATCH):
        yield from FileBackup.objects.filter(pk__in=ids[start : start + _BATCH]).defer("content")


class _Contents:
    """Contents of backups, read some at a time in the order of their paths, as they are written."""

    def __init__(self, rows: Sequence[FileBackup]) -> None:
        self._left = [(row.pk, row.size) for row in sorted(rows, key=lambda row: row.path)]
        self._held: dict[int, bytes] = {}

    def open(self, pk: int) -> IO[bytes]:
        """The bytes of one; each is asked for once."""
        if pk not in self._held:
            self._read(pk)
        return io.BytesIO(self._held.pop(pk))

    def _read(self, wanted: int) -> None:
        ids, room = [wanted], _BATCH_BYTES
        while self._left and len(ids) < _BATCH and room > 0:
            pk, size = self._left.pop(0)
            if pk not in ids:
                ids.append(pk)
            room -= size
        rows = FileBackup.objects.filter(pk__in=ids).values_list("pk", "content")
        self._held.update({pk: bytes(content or b"") for pk, content in rows})
