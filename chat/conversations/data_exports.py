"""Exports of everything of a person's: begun, looked at, downloaded. A fiber writes them (`data_export_run`)."""

from enum import StrEnum
from typing import IO, Any, Final

from django.db import transaction

from chat.account_errors import ExportNotFound
from chat.core.durable_names import DATA_EXPORT_FIBER
from chat.models import DataExport
from chat.operations.data_exports import forget_exports
from fibers.core.states import TERMINAL, FiberStatus
from fibers.services import start_fiber
from thinkproject.kernel.object_storage import object_storage
from thinkproject.kernel.owner_lock import lock_owner

MAX_RETRIES: Final = 3


class ExportStatus(StrEnum):
    """The states of an export of everything."""

    WRITING = "writing"
    READY = "ready"
    FAILED = "failed"


def export_status(row: DataExport) -> ExportStatus:
    """The status of an export, its fiber loaded. No query."""
    if row.finished_at is not None:
        return ExportStatus.READY
    fiber = row.fiber
    is_live = fiber is not None and fiber.status not in TERMINAL and fiber.status != FiberStatus.INTERRUPTED
    return ExportStatus.WRITING if is_live else ExportStatus.FAILED


def export_of(owner_id: Any) -> DataExport | None:
    """The export of a person, its fiber loaded: there is one at most."""
    return DataExport.objects.select_related("fiber").filter(owner_id=owner_id).order_by("-created_at").first()


def start_export(owner_id: Any) -> DataExport:
    """Begin an export. One that is being written goes on; one that has ended goes, with its file."""
    known = export_of(owner_id)
    if known is not None and export_status(known) is ExportStatus.WRITING:
        return known
    forget_exports(owner_id)  # before the owner's row is held: fibers are locked first
    with transaction.atomic():
        lock_owner(owner_id)
        other = export_of(owner_id)
        if other is not None:  # a parallel request was faster
            return other
        row = DataExport(owner_id=owner_id)
        row.fiber = start_fiber(
            DATA_EXPORT_FIBER,
            {"export_id": row.pk},
            lane=f"exports:{owner_id}",
            owner_id=owner_id,
            max_retries=MAX_RETRIES,
        )
        row.save(force_insert=True)
    return row


def open_export(owner_id: Any, export_id: str) -> DataExport:
    """An export of the person's own, its fiber loaded. Errors: `ExportNotFound`."""
    row = DataExport.objects.select_related("fiber").filter(owner_id=owner_id, pk=export_id).first()
    if row is None:
        raise ExportNotFound
    return row


def open_export_file(row: DataExport) -> IO[bytes]:
    """The zip of an export that is ready. Errors: `ExportNotFound`, also while it is being written."""
    if not row.storage_name:
        raise ExportNotFound
    try:
        file: IO[bytes] = object_storage().open(row.storage_name, "rb")
    except FileNotFoundError:
        raise ExportNotFound from None
    return file
