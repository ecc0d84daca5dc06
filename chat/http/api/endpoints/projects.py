"""API operations on the caller's projects, and on the files that the conversations of one have in common.

Which conversations are in a project is changed with them: `update_instance`, `move_instances`.
"""

from typing import Annotated

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router, Status

from chat.files.own_files import origin_of_upload
from chat.files.serving import ServedFile
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.by_hand import is_in_browser
from chat.http.api.endpoints.tools.workspace import entry_out, pieces_of
from chat.http.api.error_responses import declares
from chat.http.api.file_response import workspace_response
from chat.http.api.schemas.projects import ProjectFilesOut, ProjectIn, ProjectOut, ProjectPatch
from chat.http.api.schemas.workspace import FilePath, WorkspaceEntryOut
from chat.models import Project, ProjectColour
from chat.people.project_files import files_of_project, writable_files
from chat.people.projects import (
    MAX_INSTRUCTION_TOKENS,
    add_project,
    change_project,
    project_of,
    projects_of,
    remove_project,
)
from thinkproject.kernel.aio import db
from tools_app.core.files.failures import failed
from tools_app.core.files.paths import normalise
from tools_app.core.files.workspace import EntryKind
from tools_app.core.guard.reach import written_as
from tools_app.workspace.conf import workspace_settings
from tools_app.workspace.stores.database import DatabaseWorkspace

router = Router(tags=["projects"])
files_router = Router(tags=["projects"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])
router.add_router("", files_router)

MOST_FILES = 1_000
At = Annotated[FilePath, Query(description="Path of the file; every spelling of it is accepted.")]
_FILES = "/projects/{project_id}/files"
_ERRORS = declares(404, 409, 413)


@router.get("/projects", response=list[ProjectOut], operation_id="list_projects")
def project_list(request: HttpRequest) -> object:
    """Your projects, by their names."""
    return [_project(row) for row in projects_of(caller_of(request).user.pk)]


@router.post("/projects", response={201: ProjectOut}, operation_id="add_project")
def project_add(request: HttpRequest, data: ProjectIn) -> object:
    """Make a project. 422 for a name that you have already, whatever its case, and beyond 100 projects."""
    return Status(201, _project(add_project(caller_of(request).user.pk, **data.dict())))


@router.get("/projects/{project_id}", response=ProjectOut, operation_id="get_project")
def project_detail(request: HttpRequest, project_id: str) -> object:
    """One of your projects."""
    return _project(project_of(caller_of(request).user.pk, project_id))


@router.patch("/projects/{project_id}", response=ProjectOut, operation_id="change_project")
def project_change(request: HttpRequest, project_id: str, data: ProjectPatch) -> object:
    """Change a project. Its conversations read new instructions from their next turn on."""
    changes = {name: value for name, value in data.dict(exclude_unset=True).items() if value is not None}
    return _project(change_project(caller_of(request).user.pk, project_id, **changes))


@router.delete("/projects/{project_id}", response={204: None}, operation_id="remove_project")
def project_remove(request: HttpRequest, project_id: str) -> object:
    """Remove a project with its files. Its conversations stay, in no project."""
    remove_project(caller_of(request).user.pk, project_id)
    return Status(204, None)


@files_router.get(_FILES, response=ProjectFilesOut, operation_id="list_project_files", openapi_extra=_ERRORS)
async def project_files(request: HttpRequest, project_id: str) -> object:
    """The files of a project, which all of its conversations can read."""
    found = await (await _opened(request, project_id)).glob("**", limit=MOST_FILES + 1)
    files = [entry for entry in found if entry.kind is EntryKind.FILE]
    return {
        "items": [entry_out(entry) for entry in files[:MOST_FILES]],
        "has_more": len(found) > MOST_FILES,
        "file_limit": workspace_settings.file_max_bytes,
    }


@files_router.put(
    _FILES + "/content",
    response={200: WorkspaceEntryOut, 201: WorkspaceEntryOut},
    operation_id="write_project_file",
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {"format": "binary"}}}},
        **_ERRORS,
    },
)
async def project_file_write(request: HttpRequest, project_id: str, path: At) -> object:
    """Put a file into a project, or another content into it: the body, of any type."""
    files = await db(writable_files, caller_of(request).user.pk, project_id)
    known = await files.file_exists(path)
    origin, body = await origin_of_upload(pieces_of(request), path, is_by_hand=is_in_browser(request))
    with written_as(origin):
        entry = await files.write_stream(path, body)
    return Status(200 if known else 201, entry_out(entry))


@files_router.get(
    _FILES + "/content",
    operation_id="read_project_file",
    openapi_extra={
        "responses": {
            200: {"description": "The bytes", "content": {"*/*": {}}},
            206: {"description": "A piece of the bytes", "content": {"*/*": {}}},
            304: {"description": "The caller has these bytes already"},
            **declares(404, 409, 416)["responses"],
        },
    },
)
async def project_file_read(
    request: HttpRequest, project_id: str, path: At, download: bool = False
) -> HttpResponseBase:
    """The bytes of a file of a project. Its `ETag` is its version. Never served as something a browser runs."""
    files = await _opened(request, project_id)
    entry = await files.stat(path)
    if entry is None:
        raise failed("ENOENT", normalise(path))
    if entry.kind is not EntryKind.FILE:
        raise failed("EISDIR", entry.path)
    served = ServedFile(name=entry.name, media_type=entry.media_type, size=entry.size, tag=entry.version)
    return await workspace_response(
        request, served, lambda start: files.read_stream(entry.path, start=start), is_download=download
    )


@files_router.delete(_FILES, response={204: None}, operation_id="remove_project_file", openapi_extra=_ERRORS)
async def project_file_remove(request: HttpRequest, project_id: str, path: At) -> object:
    """Take a file out of a project."""
    files = await db(writable_files, caller_of(request).user.pk, project_id)
    if not await files.delete_file(path):
        raise failed("ENOENT", normalise(path))
    return Status(204, None)


async def _opened(request: HttpRequest, project_id: str) -> DatabaseWorkspace:
    """The files of one of the caller's projects, to be read. Errors: `ProjectNotFound`."""
    row = await db(project_of, caller_of(request).user.pk, project_id)
    return files_of_project(row.pk, row.owner_id)


def _project(row: Project) -> ProjectOut:
    return ProjectOut(
        id=row.pk,
        name=row.name,
        colour=ProjectColour(row.colour),
        instructions=row.instructions,
        agent=row.agent,
        conversation_count=getattr(row, "conversation_count", 0),
        max_tokens=MAX_INSTRUCTION_TOKENS,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
