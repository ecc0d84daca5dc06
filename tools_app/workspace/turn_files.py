"""Changes of turns in workspaces: the files as they were before, beside what became of them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.utils import timezone

from tools_app.core.files.diffs import unified
from tools_app.core.files.workspace import EntryKind
from tools_app.errors import FileFailed
from tools_app.models import FileBackup, WorkspaceEntry
from tools_app.workspace.conf import workspace_settings
from tools_app.workspace.stores.backups import MAX_BACKUP_BYTES

MAX_TEXT_BYTES: Final = 2 * 1024 * 1024
"""Of one turn so many bytes of texts are compared; what follows is named only."""

COUNT_OF_TURN: Final = """(
    SELECT COUNT(*) FROM think_tools_filebackup b WHERE b.turn_id = %s AND (NOT b.is_new OR EXISTS (
        SELECT 1 FROM think_tools_workspaceentry e WHERE e.workspace_id = b.workspace_id AND e.path_key = b.path_key
    ))
)"""
"""Part of a statement: `count_in_turn` of the parameter."""

_BATCH: Final = 500
_PRUNED: Final = 1_000


@dataclass(frozen=True, slots=True)
class FileState:
    """A file at a moment. `content`: `None` where it is not known, being too large."""

    size: int
    content: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that a turn changed: before it, and after it. `None`: there is none."""

    path: str
    before: FileState | None
    after: FileState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDifference:
    """A change of a turn to a file. `before`, `after`: texts; `None` where there is no file, or none that can be shown.

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


def changed_in_turn(turn_id: str, *, limit: int) -> list[ChangedFile]:
    """Files that a turn changed, by path. Three queries.

    A file's state after the turn is what the next turn that changed it found, or what it is now: changes that people
    made meanwhile count as the turn's.
    """
    later = FileBackup.objects.filter(
        workspace=OuterRef("workspace"), path_key=OuterRef("path_key"), pk__gt=OuterRef("pk")
    )
    rows = list(
        FileBackup.objects.filter(turn_id=turn_id)
        .annotate(next_id=Subquery(later.order_by("pk").values("pk")[:1]))
        .order_by("path_key", "pk")[:limit]
    )
    following = FileBackup.objects.in_bulk([row.next_id for row in rows if row.next_id is not None])
    present = dict(_present([row for row in rows if row.next_id is None]))
    return [
        ChangedFile(
            path=row.path,
            before=_state(row),
            after=_state(following[row.next_id])
            if row.next_id in following
            else present.get((row.workspace_id, row.path_key)),
        )
        for row in rows
    ]


def count_in_turn(turn_id: str) -> int:
    """The number of files that a turn has changed by now, without those that it made and removed again."""
    there = WorkspaceEntry.objects.filter(workspace=OuterRef("workspace"), path_key=OuterRef("path_key"))
    return FileBackup.objects.filter(turn_id=turn_id).filter(Q(is_new=False) | Exists(there)).count()


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
    FileBackup.objects.filter(turn_id__in=turn_ids).delete()


def expired_backups() -> QuerySet[FileBackup]:
    """Backups older than `THINK_WORKSPACE_BACKUP_DAYS`."""
    days = workspace_settings.backup_days
    if not days:
        return FileBackup.objects.none()
    return FileBackup.objects.filter(created_at__lt=timezone.now() - timedelta(days=days))


def prune_backups() -> int:
    """Remove some of it. Returns how many."""
    ids = list(expired_backups().order_by("created_at").values_list("pk", flat=True)[:_PRUNED])
    return FileBackup.objects.filter(pk__in=ids).delete()[0] if ids else 0


def _state(row: FileBackup) -> FileState | None:
    return None if row.is_new else FileState(row.size, None if row.content is None else bytes(row.content))


def _present(rows: Sequence[FileBackup]) -> "Iterator[tuple[tuple[str, str], FileState]]":
    """The files that are at the paths of these rows now, without the contents of large ones."""
    short = Case(When(size__lte=MAX_BACKUP_BYTES, storage_name="", then=F("content")), default=Value(None))
    for start in range(0, len(rows), _BATCH):
        some = Q(pk__in=[])
        for workspace_id in {row.workspace_id for row in rows[start : start + _BATCH]}:
            keys = [row.path_key for row in rows[start : start + _BATCH] if row.workspace_id == workspace_id]
            some |= Q(workspace_id=workspace_id, path_key__in=keys)
        files = WorkspaceEntry.objects.filter(some, kind=EntryKind.FILE.value).annotate(short=short)
        for workspace_id, path_key, size, content in files.values_list("workspace_id", "path_key", "size", "short"):
            yield (workspace_id, path_key), FileState(size, None if content is None else bytes(content))


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
    )


def _text(state: FileState | None) -> str | None:
    if state is None or state.content is None or b"\0" in state.content:
        return None
    try:
        return state.content.decode()
    except UnicodeDecodeError:
        return None
