"""Archives of other products that people bring: taken in, looked through, confirmed, imported, removed.

The upload is in storage and its row committed before anything is read: a fiber looks through it for a preview, a second
one imports it once a person has confirmed (`archive_run.py`). The status is that of these fibers.
"""

from enum import StrEnum
from typing import IO, Final

from django.core.files.base import File
from django.db import DatabaseError, transaction

from chat.access.auth import User, open_agent
from chat.conversations.changes import new_instance_name
from chat.core.durable_names import ARCHIVE_RUN_FIBER, ARCHIVE_SCAN_FIBER
from chat.errors import AgentNotFound, InputInvalid, QuotaExceeded
from chat.files.conf import file_settings
from chat.models import ArchiveImport
from chat.operations.archives import FOLDER
from fibers.core.states import TERMINAL, FiberStatus
from fibers.services import cancel_fiber, start_fiber
from sessions_app.transfer.archives.container import Archive
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.object_storage import delete_after_commit, object_storage
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase

MAX_RETRIES: Final = 3
MAX_LISTED: Final = 50
MAX_NAME: Final = 255


class ImportStatus(StrEnum):
    """The states of an import as people see them."""

    READING = "reading"
    READY = "ready"  # looked through; waits for a person
    IMPORTING = "importing"
    DONE = "done"
    STOPPED = "stopped"  # by a person or by a limit; can be started again
    FAILED = "failed"


def status_of(row: ArchiveImport) -> ImportStatus:
    """The status of an import, its fibers loaded. No query."""
    scan, run = row.scan, row.run
    if run is not None and run.status not in TERMINAL and run.status != FiberStatus.INTERRUPTED:
        return ImportStatus.IMPORTING
    if row.report is not None:
        if row.report.get("stopped"):
            return ImportStatus.STOPPED
        return ImportStatus.FAILED if row.error_text else ImportStatus.DONE
    if run is not None:
        return ImportStatus.STOPPED if run.status == FiberStatus.CANCELLED else ImportStatus.FAILED
    if row.preview is not None:
        return ImportStatus.FAILED if row.error_text else ImportStatus.READY
    is_live = scan is not None and scan.status not in TERMINAL and scan.status != FiberStatus.INTERRUPTED
    return ImportStatus.READING if is_live else ImportStatus.FAILED


def list_archives(owner_id: int) -> list[ArchiveImport]:
    """The newest imports of a user, their fibers loaded. One query."""
    rows = ArchiveImport.objects.select_related("scan", "run").filter(owner_id=owner_id)
    return list(rows.order_by("-created_at", "-id")[:MAX_LISTED])


def take_in(owner_id: int, file: IO[bytes], *, name: str) -> ArchiveImport:
    """Store an archive and have it looked through. `file`: can seek. Not inside a transaction.

    Errors: `ExportInvalid` for a zip file that is not to be trusted, `InputInvalid`, `QuotaExceeded`.
    """
    size = file.seek(0, 2)
    if size > file_settings.archive_max_bytes:
        raise InputInvalid(
            Phrase("An archive has at most {limit} MB.", limit=file_settings.archive_max_bytes // (1024 * 1024)),
            max_bytes=file_settings.archive_max_bytes,
        )
    Archive(file, name)
    _check_quota(owner_id)
    file.seek(0)
    store = object_storage()
    content = File(file)
    content.size = size
    storage_name = store.save(f"{FOLDER}/{new_id('obj')}", content)
    try:
        with transaction.atomic():
            lock_owner(owner_id)
            _check_quota(owner_id)
            row = ArchiveImport(owner_id=owner_id, name=_clean(name), byte_size=size, storage_name=storage_name)
            row.scan = start_fiber(
                ARCHIVE_SCAN_FIBER,
                {"import_id": row.pk},
                lane=_lane(owner_id),
                owner_id=owner_id,
                max_retries=MAX_RETRIES,
            )
            row.save(force_insert=True)
    except (DatabaseError, QuotaExceeded):
        store.delete(storage_name)
        raise
    return row


def start_import(user: User, row: ArchiveImport, agent: str) -> ArchiveImport:
    """Import what was looked through as conversations of an agent. Twice is once.

    Errors: `InputInvalid` while it is read, or when it has nothing to import; `AgentNotFound`.
    """
    if status_of(row) is ImportStatus.IMPORTING:
        return row
    if open_agent(user, agent, new_instance_name()).is_read_only:
        raise AgentNotFound
    if status_of(row) is ImportStatus.READING:
        raise InputInvalid("The archive is still being read. Wait until its preview is there.")
    if not row.storage_name or not (row.preview or {}).get("conversation_count"):
        raise InputInvalid("There is nothing to import in this archive any more.")
    with transaction.atomic():
        run = start_fiber(
            ARCHIVE_RUN_FIBER,
            {"import_id": row.pk},
            lane=_lane(row.owner_id),
            owner_id=row.owner_id,
            max_retries=MAX_RETRIES,
        )
        rows = ArchiveImport.objects.filter(pk=row.pk, run=row.run)
        if not rows.update(run=run, agent=agent, report=None, error_text="", seen_count=0):
            cancel_fiber(run.pk, reason="started_twice")
    return ArchiveImport.objects.select_related("scan", "run").get(pk=row.pk)


def stop_import(row: ArchiveImport) -> None:
    """Stop reading or importing. Conversations that are there stay."""
    for fiber_id in (row.scan_id, row.run_id):
        if fiber_id is not None:
            cancel_fiber(fiber_id, reason="stopped")


def remove_import(row: ArchiveImport) -> None:
    """Stop it and remove the archive and its report. Conversations that came of it stay."""
    with transaction.atomic():
        stop_import(row)
        ArchiveImport.objects.filter(pk=row.pk).delete()
        delete_after_commit([row.storage_name] if row.storage_name else [])


def _lane(owner_id: int) -> str:
    """One import of a user runs at a time."""
    return f"archives:{owner_id}"


def _check_quota(owner_id: int) -> None:
    limit = file_settings.archives_per_user
    waiting = ArchiveImport.objects.filter(owner_id=owner_id).exclude(storage_name="")
    if limit and waiting.count() >= limit:
        raise QuotaExceeded(
            Phrase("You have {limit} archives that are not imported yet. Import or remove one first.", limit=limit)
        )


def _clean(name: str) -> str:
    base = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(char for char in base if char.isprintable())[-MAX_NAME:] or "archive"
