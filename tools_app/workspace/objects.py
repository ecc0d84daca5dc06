"""Large files of workspaces as objects in Django's storage. See `kernel.object_storage` for the order of writing."""

import logging
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import IO, Final, cast

from django.core.files.base import File
from django.db import DatabaseError
from django.utils import timezone

from thinkproject.kernel.ids import new_id
from thinkproject.kernel.object_storage import delete_after_commit, object_storage, sweep_objects
from tools_app.models import FileBackup, WorkspaceEntry

FOLDER: Final = "think/workspaces"
ORPHAN_HOURS: Final = 24
BATCH_NAMES: Final = 500
_log = logging.getLogger(__name__)


def save_object(content: IO[bytes], size: int) -> str:
    """Save bytes as an object, and return its name. Its row comes after it."""
    file = File(content)
    file.size = size  # some storages ask, and would look for a file on disk
    return object_storage().save(f"{FOLDER}/{new_id('obj')}", file)


def open_object(name: str) -> "IO[bytes] | None":
    """The object's bytes; `None` where it is gone."""
    try:
        return cast("IO[bytes]", object_storage().open(name, "rb"))  # a File has the same methods
    except FileNotFoundError:
        return None


def referenced(names: Collection[str]) -> set[str]:
    """The names among these that files have, or had before a turn changed them."""
    return {
        name
        for table in (WorkspaceEntry, FileBackup)
        for name in table.objects.filter(storage_name__in=names).values_list("storage_name", flat=True)
    }


def forget(names: Collection[str]) -> None:
    """Delete the objects among these that nothing refers to any more, after the commit."""
    listed = sorted(set(names) - {""})
    for start in range(0, len(listed), BATCH_NAMES):
        some = listed[start : start + BATCH_NAMES]
        used = referenced(some)
        delete_after_commit([name for name in some if name not in used])


def discard_unused(names: Sequence[str]) -> None:
    """Delete objects whose rows were not written.

    A commit may have happened although its answer was lost, so the rows are looked for; without a database it is left
    to the sweep.
    """
    try:
        used = referenced(names)
    except DatabaseError:
        _log.warning("objects of a failed write are left to the sweep: %s", ", ".join(names))
        return
    discard([name for name in names if name not in used])


def discard(names: Sequence[str]) -> None:
    """Delete objects."""
    for name in names:
        object_storage().delete(name)


def sweep_orphans(*, dry_run: bool = False, limit: int = 1_000) -> int:
    """Remove objects that no file refers to. Returns how many (or would be).

    Safe to run at any time and twice: what is younger than `ORPHAN_HOURS` is left alone.
    """
    before = timezone.now() - timedelta(hours=ORPHAN_HOURS)
    return sweep_objects(FOLDER, referenced, before=before.timestamp(), dry_run=dry_run, limit=limit)
