"""Entries as they were before a turn changed them, written in the transaction of the change.

Of each path the first state of a step counts: what a step changes twice is kept once. Contents are copied within the
database; of files in storage the object is kept. The rows of a path follow one another by their versions, so it shows
where another hand came in between (`tools_app.workspace.undo`).
"""

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Final

from django.db.models import (
    BigIntegerField,
    BinaryField,
    BooleanField,
    Case,
    CharField,
    DateTimeField,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.utils import timezone

from tools_app.core.files.workspace import Entry, EntryKind
from tools_app.models import FileBackup, StoredWorkspace, WorkspaceEntry
from tools_app.workspace.conf import workspace_settings
from tools_app.workspace.stores.inserting import insert_from
from tools_app.workspace.stores.keys import key_of

_BATCH: Final = 500
_NOTHING: Final = {
    **{name: Value("", CharField()) for name in ("kind", "media_type", "target", "storage_name", "origin")},
    "size": Value(0, BigIntegerField()),
    "is_cut": Value(False, BooleanField()),
    "version_before": Value(0, BigIntegerField()),
}
_AGAIN: Final = """
ON CONFLICT (turn_id, workspace_id, path_key, step) DO UPDATE
SET version_after = excluded.version_after, kind_after = excluded.kind_after
"""
_step: ContextVar[Callable[[], int] | None] = ContextVar("think_step", default=None)


def count_steps(step: Callable[[], int]) -> None:
    """Have what turns keep from now on be of the step that this gives then: in this task, and those that it starts."""
    _step.set(step)


def step_now() -> int | None:
    """The step that changes are of here; `None` outside of turns."""
    step = _step.get()
    return None if step is None else step()


class FileBackups:
    """The backups of one turn for a workspace whose row the caller has locked, and writes.

    Without a turn only what turns left is kept, once, so that it is known what they left.
    """

    def __init__(self, turn_id: str, row: StoredWorkspace, entries: QuerySet[WorkspaceEntry]) -> None:
        self._turn_id = turn_id
        self._row = row
        self._entries = entries
        self._step = row.version if not turn_id else step_now() or 0
        self._cut_from = ""

    def reserve(self, gone: Sequence[Entry]) -> None:
        """Count what is about to be kept; where that is too much, the first files by their paths have room."""
        size, limit = _bytes_of(gone), workspace_settings.backup_bytes
        if not self._turn_id or not size or not limit:
            return
        if self._row.kept_turn_id != self._turn_id:
            self._row.kept_turn_id, self._row.kept_bytes = self._turn_id, 0
        if self._row.kept_bytes + size > limit:  # counted roughly until now
            kept = FileBackup.objects.filter(turn_id=self._turn_id)
            known = set(kept.filter(workspace=self._row, step=self._step).values_list("path_key", flat=True))
            gone = [each for each in gone if key_of(each.path) not in known]
            counted = kept.filter(kind=EntryKind.FILE.value, is_cut=False).aggregate(total=Sum("size"))
            self._row.kept_bytes, size = counted["total"] or 0, _bytes_of(gone)
            if self._row.kept_bytes + size > limit:
                self._cut_from = _first_beyond(gone, limit - self._row.kept_bytes)
        self._row.kept_bytes = min(limit, self._row.kept_bytes + size)

    def keep(self, changed: Iterable[Q], *, by: EntryKind | None = None) -> None:
        """Keep the entries that these conditions select, before they are removed, or replaced by such as these.

        One statement for each condition.
        """
        after = {
            "version_after": Value(0 if by is None else self._row.version, BigIntegerField()),
            "kind_after": Value("" if by is None else by.value, CharField()),
        }
        for some in changed:
            entries = self._entries.filter(some)
            if not self._turn_id:
                left = FileBackup.objects.filter(
                    workspace=OuterRef("workspace"), path_key=OuterRef("path_key"), version_after=OuterRef("version")
                ).exclude(turn_id="")
                entries = entries.filter(Exists(left))
            self._insert(entries, self._old() | after)

    def note_new(self, made: Sequence[Entry], replaced: Sequence[Entry] = ()) -> None:
        """Note entries that have just been made, but for those that replaced others."""
        known = {entry.path for entry in replaced}
        keys = [key_of(each.path) for each in made if each.path not in known] if self._turn_id else []
        for start in range(0, len(keys), _BATCH):
            entries = self._entries.filter(path_key__in=keys[start : start + _BATCH])
            self._insert(entries, _NOTHING | {"version_after": F("version"), "kind_after": F("kind")})

    def _old(self) -> dict[str, Any]:
        is_cut: Any = Value(False, BooleanField())
        content: Any = F("content")
        storage_name: Any = F("storage_name")
        if self._cut_from:
            beyond = Q(kind=EntryKind.FILE.value, path_key__gte=self._cut_from)
            is_cut = Case(When(beyond, then=Value(True)), default=Value(False), output_field=BooleanField())
            content = Case(When(beyond, then=Value(None)), default=content, output_field=BinaryField())
            storage_name = Case(When(beyond, then=Value("")), default=storage_name, output_field=CharField())
        kept = {name: F(name) for name in ("kind", "size", "media_type", "target", "origin")}
        return {
            **kept,
            "storage_name": storage_name,
            "content": content,
            "is_cut": is_cut,
            "version_before": F("version"),
        }

    def _insert(self, entries: QuerySet[WorkspaceEntry], state: dict[str, Any]) -> None:
        values = {
            "workspace_id": F("workspace_id"),
            "turn_id": Value(self._turn_id, CharField()),
            "step": Value(self._step, BigIntegerField()),
            "path": F("path"),
            "path_key": F("path_key"),
            **state,
            "created_at": Value(timezone.now(), DateTimeField()),
        }
        insert_from(entries, FileBackup, values, on_conflict=_AGAIN)


def _bytes_of(entries: Sequence[Entry]) -> int:
    return sum(each.size for each in entries if each.kind is EntryKind.FILE)


def _first_beyond(gone: Sequence[Entry], room: int) -> str:
    """The key of the first file that has no room any more."""
    for key, size in sorted((key_of(each.path), each.size) for each in gone if each.kind is EntryKind.FILE):
        room -= size
        if room < 0:
            return key
    return ""
