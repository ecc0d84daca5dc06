"""API operations on archives of other products: upload, preview, import, report."""

from typing import Annotated

from django.http import HttpRequest
from ninja import File, Router, Status
from ninja.files import UploadedFile

from chat.access.auth import open_archive
from chat.conversations import archive_imports
from chat.files.conf import file_settings
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.archives import ArchiveOut, ArchivesOut, ArchiveStartIn
from chat.models import ArchiveImport
from thinkproject.kernel.filling import filled

router = Router(tags=["conversations"])


@router.get("/archives", response=ArchivesOut, operation_id="list_archives")
def archive_list(request: HttpRequest) -> object:
    """Your imports of archives, the newest first, and the largest archive that can be uploaded."""
    rows = archive_imports.list_archives(caller_of(request).user.pk)
    return ArchivesOut(items=[_encode(row) for row in rows], max_bytes=file_settings.archive_max_bytes)


@router.post("/archives", response={201: ArchiveOut}, operation_id="upload_archive", openapi_extra=declares(429))
def archive_upload(request: HttpRequest, file: Annotated[UploadedFile, File()]) -> object:
    """Upload the export of ChatGPT, Claude, Open WebUI or LibreChat, a zip or a JSON file. It is looked through next.

    Nothing is imported yet: ask for the import until its status is `ready`, then start it.
    """
    row = archive_imports.take_in(caller_of(request).user.pk, file, name=file.name or "")
    return Status(201, _encode(row))


@router.get("/archives/{import_id}", response=ArchiveOut, operation_id="get_archive")
def archive_get(request: HttpRequest, import_id: str) -> object:
    """An import: its preview, how far it is, its report."""
    return _encode(open_archive(caller_of(request).user, import_id))


@router.post("/archives/{import_id}/start", response=ArchiveOut, operation_id="start_archive")
def archive_start(request: HttpRequest, import_id: str, data: ArchiveStartIn) -> object:
    """Import every conversation that you do not have yet. Safe to call twice, and again after it was stopped."""
    user = caller_of(request).user
    return _encode(archive_imports.start_import(user, open_archive(user, import_id), data.agent))


@router.post("/archives/{import_id}/stop", response=ArchiveOut, operation_id="stop_archive")
def archive_stop(request: HttpRequest, import_id: str) -> object:
    """Stop reading or importing. Conversations that are there stay."""
    user = caller_of(request).user
    archive_imports.stop_import(open_archive(user, import_id))
    return _encode(open_archive(user, import_id))


@router.delete("/archives/{import_id}", response={204: None}, operation_id="delete_archive")
def archive_delete(request: HttpRequest, import_id: str) -> object:
    """Remove the upload and its report. Conversations that came of it stay."""
    archive_imports.remove_import(open_archive(caller_of(request).user, import_id))
    return Status(204, None)


def _encode(row: ArchiveImport) -> ArchiveOut:
    return filled(ArchiveOut, row, id=row.pk, status=archive_imports.status_of(row).value, error=row.error_text)
