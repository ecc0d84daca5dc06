"""API operations on files: take in, give out to the owner alone, remove."""

from typing import Annotated

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import File, Router, Status
from ninja.files import UploadedFile

from chat.access.auth import open_attachment, open_instance
from chat.files import attachments
from chat.files.conf import file_settings
from chat.files.sent import files_of
from chat.files.views import note_of
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.file_response import file_response, view_response
from chat.http.api.schemas.common import FileLimitsOut, FileOut, SentFileOut
from chat.models import Attachment, Role
from thinkproject.kernel.filling import filled

router = Router(tags=["files"])


@router.post("/files", response={201: FileOut}, operation_id="upload_file", openapi_extra=declares(429))
def file_upload(request: HttpRequest, file: Annotated[UploadedFile, File()]) -> object:
    """Upload a file for use in a message. Files that no message uses are deleted after a day."""
    caller = caller_of(request)
    row = attachments.store_upload(caller.user.pk, file, is_by_hand=caller.credential.kind == "session")
    return Status(201, _encode(row, note_of(row)))


@router.get("/file-limits", response=FileLimitsOut, operation_id="get_file_limits")
def file_limits(request: HttpRequest) -> object:  # noqa: ARG001 - the framework names it
    """Size and types of files that can be attached, to be looked at before an upload. The bytes decide all the same."""
    return FileLimitsOut(max_bytes=file_settings.max_bytes, types=sorted(file_settings.types))


@router.get(
    "/files/{file_id}",
    operation_id="get_file",
    openapi_extra={
        "responses": {
            200: {"description": "The bytes", "content": {"*/*": {}}},
            206: {"description": "A piece of the bytes", "content": {"*/*": {}}},
            304: {"description": "The caller has these bytes already"},
            **declares(416)["responses"],
        },
    },
)
def file_get(request: HttpRequest, file_id: str) -> HttpResponseBase:
    """Bytes of a file; `Range` and `If-None-Match` are honoured. Never served as something a browser runs."""
    return file_response(request, open_attachment(caller_of(request).user, file_id, needs=Role.READER))


@router.get(
    "/files/{file_id}/view",
    operation_id="view_file",
    openapi_extra={"responses": {200: {"description": "Text, or a picture", "content": {"*/*": {}}}}},
)
def file_view(request: HttpRequest, file_id: str) -> HttpResponseBase:
    """A file as models get it: the text of a document, a picture upright and small enough.

    Where there is neither, a sentence in parentheses has the reason. Models that read PDF documents get the PDF.
    """
    return view_response(open_attachment(caller_of(request).user, file_id, needs=Role.READER))


@router.get("/instances/{instance_id}/files", response=list[SentFileOut], operation_id="list_sent_files")
def sent_file_list(request: HttpRequest, instance_id: str) -> object:
    """The files in the messages of a conversation, the newest first; of its newest 500 messages."""
    instance = open_instance(caller_of(request).user, instance_id, needs=Role.READER)
    return [
        SentFileOut(
            id=each.row.id,
            url=attachments.url_of(each.row.id),
            name=each.row.name,
            media_type=each.row.media_type,
            byte_size=each.row.byte_size,
            message_id=each.message_id,
            role=each.role,
        )
        for each in files_of(instance)
    ]


@router.delete("/files/{file_id}", response={204: None}, operation_id="delete_file")
def file_delete(request: HttpRequest, file_id: str) -> object:
    """Remove a file. Messages that refer to it show that it is gone."""
    attachments.delete_attachment(open_attachment(caller_of(request).user, file_id))
    return Status(204, None)


def _encode(row: Attachment, note: str) -> FileOut:
    return filled(FileOut, row, url=attachments.url_of(row.id), note=note)
