"""Changes of turns in workspaces: the entries as they were before, beside what the turns made of them.

The cost follows what was changed, not what the workspace holds.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal, NamedTuple

from django.db.models import Case, Exists, F, Max, Min, OuterRef, Q, QuerySet, Subquery, Value, When
from django.utils import timezone

from tools_app.core.files.diffs import unified
from tools_app.core.files.patches import Blob, PatchedFile
from tools_app.core.files.workspace import EntryKind
from tools_app.errors import FileFailed
from tools_app.models import FileBackup, WorkspaceEntry
from tools_app.workspace import objects
from tools_app.workspace.conf import workspace_settings
from tools_app.workspace.stores.directory import DirectoryWorkspace

MAX_SHOWN_BYTES: Final = 256 * 1024
"""Of larger files, and of those in storage, no text is shown."""

MAX_TEXT_BYTES: Final = 2 * 1024 * 1024
"""Of one turn so many bytes of texts are compared; what follows is named only."""

MAX_PATCH_BYTES: Final = 32 * 1024 * 1024
"""Of the files in one patch, before and after."""

COUNT_OF_TURN: Final = """(
    SELECT COUNT(*) FROM think_tools_filebackup b WHERE b.turn_id = %s AND b.step = (
        SELECT MIN(c.step) FROM think_tools_filebackup c
        WHERE c.turn_id = b.turn_id AND c.workspace_id = b.workspace_id AND c.path_key = b.path_key
    ) AND (b.kind IN ('file', 'symlink') OR b.kind_after IN ('file', 'symlink')) AND (b.kind <> '' OR '' <> (
        SELECT d.kind_after FROM think_tools_filebackup d
        WHERE d.turn_id = b.turn_id AND d.workspace_id = b.workspace_id AND d.path_key = b.path_key
        ORDER BY d.step DESC LIMIT 1
    ))
)"""
"""Part of a statement: `count_in_turn` of the parameter."""

FILE_KINDS: Final = (EntryKind.FILE.value, EntryKind.SYMLINK.value)
OF_FILES: Final = Q(kind__in=FILE_KINDS) | Q(kind_after__in=FILE_KINDS)
"""Condition of backups that are not of directories alone."""

_BATCH: Final = 500
_PRUNED: Final = 1_000


@dataclass(frozen=True, slots=True)
class FileState:
    """A file at a moment. `content`: `None` where it is not known, or too large to be shown; of a link its target."""

    size: int
    content: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that was changed: before it, and after it. `None`: there is none. `id`: of its first backup."""

    path: str
    before: FileState | None
    after: FileState | None
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDifference:
    """A change of a file. `before`, `after`: texts; `None` where there is no file, or none that can be shown.

    It `is_cut` where it is too large to be kept or shown. `diff`: unified, also against nothing; empty unless all that
    there is are texts. `added`, `removed`: lines.
    """

    path: str
    kind: Literal["created", "updated", "deleted"]
    before: str | None
    after: str | None
    diff: str
    added: int
    removed: int
    is_cut: bool
    id: int = 0  # as of `ChangedFile`


def changed_files(some: Q, *, limit: int) -> list[ChangedFile]:
    """Files and links that were changed by what this condition selects, by path. Four queries.

    The state after it is what it left there, also where people have changed the file since.
    """
    return [
        ChangedFile(path=end.first.path, before=state_of(end.first), after=_left_by(end), id=end.first.pk)
        for end in _ends(some, limit)
    ]


def patched_files(some: Q, *, limit: int) -> tuple[list[PatchedFile], list[str]]:
    """The same files with all of their bytes, and the paths of those whose bytes are not known, or are too many."""
    found: list[PatchedFile] = []
    unknown: list[str] = []
    room = MAX_PATCH_BYTES
    for end in _ends(some, limit):
        sides = [None if row is None else _blob(row, room) for row in (end.first, end.after)]
        is_whole = all(
            blob is not None or _is_no_file(row) for blob, row in zip(sides, (end.first, end.after), strict=True)
        )
        if is_whole and not end.is_unknown:
            room -= sum(len(blob.content) for blob in sides if blob is not None)
            found.append(PatchedFile(path=end.first.path, before=sides[0], after=sides[1]))
        else:
            unknown.append(end.first.path)
    return found, unknown


class _Ends(NamedTuple):
    """The first backup of a path, and the row that has what was left there: `None` for nothing, or not known."""

    first: Any
    after: Any | None
    is_unknown: bool = False


def _ends(some: Q, limit: int) -> list[_Ends]:
    spans = list(
        FileBackup.objects.filter(some, OF_FILES)
        .values("workspace_id", "path_key")
        .annotate(first=Min("pk"), last=Max("pk"))
        .order_by("path_key", "workspace_id")[:limit]
    )
    rows = rows_of([span[end] for span in spans for end in ("first", "last")])
    lasts = [rows[span["last"]] for span in spans]
    later = rows_of([row.next_id for row in lasts if row.next_id is not None])
    present = present_at(lasts)
    return [_Ends(rows[span["first"]], *_after(rows[span["last"]], later, present)) for span in spans]


def changed_in_turn(turn_id: str, *, step: int | None = None, limit: int) -> list[ChangedFile]:
    """The same, of a turn, or of one of its steps, counted from 0."""
    return changed_files(Q(turn_id=turn_id) if step is None else Q(turn_id=turn_id, step=step), limit=limit)


def count_in_turn(turn_id: str) -> int:
    """The number of files that a turn has changed by now, without those that it made and removed again."""
    same = FileBackup.objects.filter(
        turn_id=OuterRef("turn_id"), workspace=OuterRef("workspace"), path_key=OuterRef("path_key")
    )
    first = FileBackup.objects.filter(~Exists(same.filter(step__lt=OuterRef("step"))), OF_FILES, turn_id=turn_id)
    last = Subquery(same.order_by("-step").values("kind_after")[:1])
    return first.annotate(left=last).exclude(kind="", left="").count()


def compared(files: Iterable[ChangedFile]) -> list[FileDifference]:
    """Compare texts; files that are as they were are left out. Takes seconds for long texts: not on the event loop."""
    room = MAX_TEXT_BYTES
    found: list[FileDifference] = []
    for each in files:
        size = sum(state.size for state in (each.before, each.after) if state is not None)
        if each.before != each.after or (each.before is not None and each.before.content is None):
            found.append(_compared(each, is_cut=size > room))
            room -= size
    return found


def forget_backups(turn_ids: Collection[str]) -> None:
    """Delete what was kept for these turns. Inside the caller's transaction."""
    _delete(FileBackup.objects.filter(turn_id__in=turn_ids))


def expired_backups() -> QuerySet[FileBackup]:
    """Backups older than `THINK_WORKSPACE_BACKUP_DAYS`."""
    days = workspace_settings.backup_days
    if not days:
        return FileBackup.objects.none()
    return FileBackup.objects.filter(created_at__lt=timezone.now() - timedelta(days=days))


def prune_backups() -> int:
    """Remove some of it. Returns how many."""
    ids = list(expired_backups().order_by("created_at").values_list("pk", flat=True)[:_PRUNED])
    return _delete(FileBackup.objects.filter(pk__in=ids)) if ids else 0


def _delete(rows: QuerySet[FileBackup]) -> int:
    """Delete rows, and after the commit the objects that nothing else has."""
    names = list(rows.exclude(storage_name="").values_list("storage_name", flat=True))
    count = rows.delete()[0]
    objects.forget(names)
    return count


_SHORT: Final = Case(When(size__lte=MAX_SHOWN_BYTES, storage_name="", then=F("content")), default=Value(None))


def rows_of(ids: Iterable[int]) -> dict[int, Any]:
    """Rows by their keys with the contents of short files only, and the key of the next row of the path."""
    next_row = FileBackup.objects.filter(
        workspace=OuterRef("workspace"), path_key=OuterRef("path_key"), pk__gt=OuterRef("pk")
    ).order_by("pk")
    found: dict[int, Any] = {}
    wanted = sorted(set(ids))
    for start in range(0, len(wanted), _BATCH):
        rows = FileBackup.objects.filter(pk__in=wanted[start : start + _BATCH]).defer("content")
        root = F("workspace__root")
        for row in rows.annotate(short=_SHORT, root=root, next_id=Subquery(next_row.values("pk")[:1])):
            found[row.pk] = row
    return found


def at_paths(rows: Sequence[Any]) -> Q:
    """Condition of entries, or of backups, at the paths of these rows."""
    some = Q(pk__in=[])
    for workspace_id in {row.workspace_id for row in rows}:
        some |= Q(
            workspace_id=workspace_id, path_key__in=[row.path_key for row in rows if row.workspace_id == workspace_id]
        )
    return some


def present_at(rows: Sequence[Any]) -> dict[tuple[str, str], Any]:
    """The entries that are at the paths of these rows now, without the contents of large ones."""
    found: dict[tuple[str, str], Any] = {}
    for root in {row.root for row in rows} - {""}:
        here = [row for row in rows if row.root == root]
        states = DirectoryWorkspace(root).states_at([row.path for row in here], with_content=True)
        found.update({(row.workspace_id, row.path_key): states[row.path] for row in here if row.path in states})
    rows = [row for row in rows if not row.root]
    for start in range(0, len(rows), _BATCH):
        entries = WorkspaceEntry.objects.filter(at_paths(rows[start : start + _BATCH])).defer("content")
        found.update({(each.workspace_id, each.path_key): each for each in entries.annotate(short=_SHORT)})
    return found


def _after(last: Any, later: Mapping[int, Any], present: Mapping[tuple[str, str], Any]) -> tuple[Any | None, bool]:
    """The row of what a change left: nothing, or what is there still, or what the next change found; or not known."""
    if last.version_after == 0:
        return None, False
    here = present.get((last.workspace_id, last.path_key))
    following = later.get(last.next_id)
    if following is not None and last.version_after in {following.version_before, None}:
        return following, False
    if here is not None and last.version_after in {here.version, None}:
        return here, False
    return None, True


def _left_by(end: _Ends) -> FileState | None:
    if end.is_unknown:
        return FileState(0, None)
    return None if end.after is None else state_of(end.after)


def state_of(row: Any) -> FileState | None:
    """The file or link of a backup or an entry, the content of a short file read where it has to be."""
    if row.kind not in FILE_KINDS:
        return None
    if row.kind == EntryKind.SYMLINK:
        return FileState(row.size, row.target.encode())
    is_short = not row.storage_name and row.size <= MAX_SHOWN_BYTES and not getattr(row, "is_cut", False)
    content = (row.short if hasattr(row, "short") else row.content) if is_short else None
    return FileState(row.size, None if content is None else bytes(content))


def _blob(row: Any, room: int) -> Blob | None:
    """All bytes of a row; `None` where there is no file, where they are not kept, or more than there is room for."""
    if row.kind == EntryKind.SYMLINK:
        return Blob(row.target.encode(), is_link=True)
    if row.kind != EntryKind.FILE or row.size > room or getattr(row, "is_cut", False):
        return None
    if not row.storage_name:
        return None if row.content is None else Blob(bytes(row.content))
    file = objects.open_object(row.storage_name)
    if file is None:
        return None
    with file:
        return Blob(file.read())


def _is_no_file(row: Any) -> bool:
    return row is None or row.kind not in FILE_KINDS


def _compared(file: ChangedFile, *, is_cut: bool) -> FileDifference:
    states = [state for state in (file.before, file.after) if state is not None]
    is_cut = is_cut or any(state.content is None for state in states)
    before, after = (None if is_cut else _text(state) for state in (file.before, file.after))
    is_text = not is_cut and len(states) == sum(text is not None for text in (before, after))
    diff = ""
    if is_text:
        try:
            diff = unified(before or "", after or "", file.path, file.path)
        except FileFailed:  # too many lines
            is_cut, before, after = True, None, None
    lines = diff.splitlines()[2:]  # after the two that name the file
    return FileDifference(
        path=file.path,
        kind="created" if file.before is None else "deleted" if file.after is None else "updated",
        before=before,
        after=after,
        diff=diff,
        added=sum(line.startswith("+") for line in lines),
        removed=sum(line.startswith("-") for line in lines),
        is_cut=is_cut,
        id=file.id,
    )


def _text(state: FileState | None) -> str | None:
    if state is None or state.content is None or b"\0" in state.content:
        return None
    try:
        return state.content.decode()
    except UnicodeDecodeError:
        return None
