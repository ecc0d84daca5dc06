"""Files as they were before a turn changed them, written in the transaction of the change.

Of each path the first state counts: what a turn changes twice is kept once.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from django.db.models import (
    BigIntegerField,
    BinaryField,
    BooleanField,
    Case,
    CharField,
    DateTimeField,
    F,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models import Window as Over
from django.db.models.lookups import LessThanOrEqual
from django.utils import timezone

from tools_app.core.files.workspace import Entry, EntryKind
from tools_app.models import FileBackup, WorkspaceEntry
from tools_app.workspace.stores.inserting import insert_from
from tools_app.workspace.stores.keys import key_of

MAX_BACKUP_BYTES: Final = 256 * 1024
"""Of larger files only the size is kept."""

MAX_STATEMENT_BYTES: Final = 16 * 1024 * 1024
"""Of so many bytes the contents are kept at a time, in the order of paths: who removes a large tree pays no copy."""

_BATCH: Final = 500


class FileBackups:
    """The backups of one turn for a workspace whose row the caller has locked."""

    def __init__(self, turn_id: str, entries: QuerySet[WorkspaceEntry]) -> None:
        self._turn_id = turn_id
        self._entries = entries

    def keep(self, changed: Iterable[Q], gone: Sequence[Entry]) -> None:
        """Keep files that are about to be replaced or removed; `changed` selects what `gone` has.

        One statement for each condition, and none where there is no file.
        """
        if self._turn_id and any(entry.kind is EntryKind.FILE for entry in gone):
            for some in changed:
                self._insert_old(self._entries.filter(some, kind=EntryKind.FILE.value))

    def note_new(self, made: Sequence[Entry], gone: Sequence[Entry] = ()) -> None:
        """Note files that have just been made, but for those that replaced one of `gone`."""
        known = {entry.path for entry in gone if entry.kind is EntryKind.FILE}
        keys = [key_of(each.path) for each in made if each.kind is EntryKind.FILE and each.path not in known]
        for start in range(0, len(keys) if self._turn_id else 0, _BATCH):
            self._insert_new(self._entries.filter(path_key__in=keys[start : start + _BATCH]))

    def _insert_old(self, files: QuerySet[WorkspaceEntry]) -> None:
        total = Over(Sum("size"), order_by="path_key")
        has_content = {"storage_name": "", "size__lte": MAX_BACKUP_BYTES}
        fits = LessThanOrEqual(total, Value(MAX_STATEMENT_BYTES))
        no_content = Value(None, BinaryField())
        content = Case(When(**has_content, then=F("content")), default=no_content, output_field=BinaryField())
        is_cut = Case(When(**has_content, then=Value(False)), default=Value(True), output_field=BooleanField())
        insert_from(
            files,
            FileBackup,
            {
                "workspace_id": F("workspace_id"),
                "turn_id": Value(self._turn_id, CharField()),
                "path": F("path"),
                "path_key": F("path_key"),
                "is_new": Value(False, BooleanField()),
                "size": F("size"),
                "content": Case(When(fits, then=content), default=no_content, output_field=BinaryField()),
                "is_cut": Case(When(fits, then=is_cut), default=Value(True), output_field=BooleanField()),
                "created_at": Value(timezone.now(), DateTimeField()),
            },
            ignores_conflicts=True,
        )

    def _insert_new(self, files: QuerySet[WorkspaceEntry]) -> None:
        insert_from(
            files,
            FileBackup,
            {
                "workspace_id": F("workspace_id"),
                "turn_id": Value(self._turn_id, CharField()),
                "path": F("path"),
                "path_key": F("path_key"),
                "is_new": Value(True, BooleanField()),
                "size": Value(0, BigIntegerField()),
                "is_cut": Value(False, BooleanField()),
                "created_at": Value(timezone.now(), DateTimeField()),
            },
            ignores_conflicts=True,
        )
