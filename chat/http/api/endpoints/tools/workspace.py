"""API operations on the files of a conversation: its agent's workspace, whatever store that has.

Async, because the agent's class chooses the workspace, and its code runs.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from typing import Annotated

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from ninja import File, Header, Query, Router, Status
from ninja.files import UploadedFile

from chat.access.auth import open_attachment, open_instance, open_turn
from chat.errors import InputInvalid
from chat.files.own_files import origin_of_copy, origin_of_upload
from chat.files.sent import copy_to_workspace
from chat.files.serving import ServedFile
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.by_hand import is_by_hand, origin_of_edit
from chat.http.api.error_responses import declares
from chat.http.api.file_response import begun, workspace_response
from chat.http.api.schemas.workspace import (
    AttachmentIn,
    DiffIn,
    DiffOut,
    DirectoryIn,
    FileChangesOut,
    FilePath,
    FileTextIn,
    FileTextOut,
    FileVersionOut,
    FileVersionsOut,
    FoundFilesOut,
    MoveIn,
    NamePart,
    TurnFilesOut,
    WorkspaceEntriesOut,
    WorkspaceEntryOut,
    WorkspaceOut,
)
from chat.instance.workspaces import ViewedWorkspace, has_repository, is_of_conversation, view_workspace
from chat.instances.rows import key_of
from chat.members import policy
from chat.members.selectors import role_of
from chat.models import AgentInstance, Role
from thinkproject.kernel.aio import db
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.threads import acting_for
from tools_app.core.files.encodings import named
from tools_app.core.files.failures import failed
from tools_app.core.files.globs import containing
from tools_app.core.files.paths import normalise
from tools_app.core.files.workspace import Entry, FileChange
from tools_app.core.guard.reach import written_as
from tools_app.core.origins import Origin
from tools_app.errors import FileFailed
from tools_app.file_tools.keeping import replace_text, stored_text
from tools_app.file_tools.lookalikes import naming_alike
from tools_app.workspace.archive import export_zip
from tools_app.workspace.conf import workspace_settings
from tools_app.workspace.file_versions import version_text, versions_of
from tools_app.workspace.stores.database import DatabaseWorkspace
from tools_app.workspace.turn_files import changed_in_turn, compared
from tools_app.workspace.unpacking import import_archive

router = Router(tags=["files"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])
PIECE_BYTES = 256 * 1024
At = Annotated[FilePath, Query(description="Path within the workspace; every spelling of it is accepted.")]
Few = Annotated[int, Query(ge=1, le=1000)]
Step = Annotated[int | None, Query(ge=0, description="Number of a step, from 0.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000)]
IfMatch = Annotated[str, Header(alias="If-Match", max_length=200)]
IfNoneMatch = Annotated[str, Header(alias="If-None-Match", max_length=200)]
_ERRORS = declares(404, 409, 413, 500)


@router.get(
    "/instances/{instance_id}/workspace", response=WorkspaceOut, operation_id="get_workspace", openapi_extra=_ERRORS
)
async def workspace_detail(request: HttpRequest, instance_id: str) -> object:
    """The workspace of a conversation: totals and limits."""
    viewed = await _viewed(request, instance_id)
    info = await viewed.workspace.info()
    return {
        "can_write": viewed.can_write,
        "has_repository": await has_repository(viewed.workspace),
        "file_count": info.file_count,
        "directory_count": info.directory_count,
        "byte_count": info.byte_count,
        "byte_limit": workspace_settings.quota_bytes or None,
        "entry_limit": workspace_settings.quota_entries or None,
        "file_limit": workspace_settings.file_max_bytes,
    }


@router.get(
    "/instances/{instance_id}/workspace/entries",
    response=WorkspaceEntriesOut,
    operation_id="list_workspace",
    openapi_extra=_ERRORS,
)
async def workspace_list(
    request: HttpRequest, instance_id: str, path: FilePath = "/", limit: Few = 200, offset: Offset = 0
) -> object:
    """The children of a directory, directories first. One that does not exist has none."""
    workspace = (await _viewed(request, instance_id)).workspace
    found = await workspace.read_dir(path, limit=limit + 1, offset=offset)
    items = [entry_out(entry) for entry in found[:limit]]
    return {"path": normalise(path), "items": items, "has_more": len(found) > limit}


@router.delete(
    "/instances/{instance_id}/workspace/entries",
    response={204: None},
    operation_id="delete_workspace_entry",
    openapi_extra=_ERRORS,
)
async def workspace_delete(request: HttpRequest, instance_id: str, path: At, recursive: bool = False) -> object:
    """Delete a file, a link or a directory; one with something in it only with `recursive`."""
    workspace = (await _writable(request, instance_id)).workspace
    async with naming_alike(workspace):
        await workspace.rm(path, recursive=recursive)
    return Status(204, None)


@router.get(
    "/instances/{instance_id}/workspace/entry",
    response=WorkspaceEntryOut,
    operation_id="get_workspace_entry",
    openapi_extra=_ERRORS,
)
async def workspace_entry(request: HttpRequest, instance_id: str, path: At) -> object:
    """One entry, links followed."""
    return entry_out(await _existing(await _viewed(request, instance_id), path))


@router.get(
    "/instances/{instance_id}/workspace/content",
    operation_id="read_workspace_file",
    openapi_extra={
        "responses": {
            200: {"description": "The bytes", "content": {"*/*": {}}},
            206: {"description": "A piece of the bytes", "content": {"*/*": {}}},
            304: {"description": "The caller has these bytes already"},
            **declares(404, 409, 416, 500)["responses"],
        },
    },
)
async def workspace_read(request: HttpRequest, instance_id: str, path: At, download: bool = False) -> HttpResponseBase:
    """The bytes of a file. Its `ETag` is its version. Never served as something a browser runs."""
    viewed = await _viewed(request, instance_id)
    entry = await _existing(viewed, path)
    if entry.kind != "file":
        raise failed("EISDIR", entry.path)
    served = ServedFile(name=entry.name, media_type=entry.media_type, size=entry.size, tag=entry.version)
    return await workspace_response(
        request, served, lambda start: viewed.workspace.read_stream(entry.path, start=start), is_download=download
    )


@router.put(
    "/instances/{instance_id}/workspace/content",
    response={200: WorkspaceEntryOut, 201: WorkspaceEntryOut},
    operation_id="write_workspace_file",
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {"format": "binary"}}}},
        **declares(409, 413, 500),
    },
)
async def workspace_write(
    request: HttpRequest,
    instance_id: str,
    path: At,
    if_match: IfMatch = "",
    if_none_match: IfNoneMatch = "",
) -> object:
    """Write a file: the body is its content, of any type. Directories above it are made.

    `If-Match` with the version that was read, or `If-None-Match: *` for a new file, makes it a conflict (409,
    `file_conflict`) when someone else was there in between.
    """
    viewed = await _writable(request, instance_id)
    known = await viewed.workspace.file_exists(path)
    expected = if_match.strip().removeprefix("W/").strip('"') if if_match else "" if if_none_match == "*" else None
    origin, body = await origin_of_upload(pieces_of(request), path, is_by_hand=await is_by_hand(request, instance_id))
    with written_as(origin):
        entry = await viewed.workspace.write_stream(path, body, expected_version=expected)
    return Status(200 if known else 201, entry_out(entry))


@router.get(
    "/instances/{instance_id}/workspace/text",
    response=FileTextOut,
    operation_id="read_workspace_text",
    openapi_extra=_ERRORS,
)
async def workspace_text(request: HttpRequest, instance_id: str, path: At) -> object:
    """The text of a file of at most 1 MB, whatever its encoding. What is no text is an error (`file_failed`)."""
    found = await stored_text((await _viewed(request, instance_id)).workspace, path)
    return {
        "path": normalise(path),
        "version": found.version,
        "text": found.text,
        "encoding": found.encoding.description,
        "can_be_saved": found.can_be_saved,
    }


@router.get(
    "/instances/{instance_id}/workspace/versions",
    response=FileVersionsOut,
    operation_id="list_file_versions",
    openapi_extra=_ERRORS,
)
async def workspace_versions(request: HttpRequest, instance_id: str, path: At, limit: Few = 50) -> object:
    """Earlier versions of a file, the newest first: what stood there until a turn, or a person after one, replaced it.

    Kept for `THINK_WORKSPACE_BACKUP_DAYS`. Files of a store outside of the database have none.
    """
    workspace_id = await _stored_id(await _viewed(request, instance_id))
    found = [] if workspace_id is None else await db(lambda: versions_of(workspace_id, path, limit=limit))
    return {"path": normalise(path), "items": [asdict(version) for version in found]}


@router.get(
    "/instances/{instance_id}/workspace/versions/{version_id}",
    response=FileVersionOut,
    operation_id="read_file_version",
    openapi_extra=_ERRORS,
)
async def workspace_version(request: HttpRequest, instance_id: str, version_id: int, path: At) -> object:
    """The text of an earlier version of a file. One that is not kept, or is no text, is an error (`file_failed`)."""
    workspace_id = await _stored_id(await _viewed(request, instance_id))
    text = None if workspace_id is None else await db(version_text, workspace_id, path, version_id)
    if text is None:
        raise failed("ENOENT", normalise(path))
    return {"path": normalise(path), "id": version_id, "text": text}


@router.put(
    "/instances/{instance_id}/workspace/text",
    response=WorkspaceEntryOut,
    operation_id="write_workspace_text",
    openapi_extra=_ERRORS,
)
async def workspace_write_text(request: HttpRequest, instance_id: str, path: At, data: FileTextIn) -> object:
    """Replace the text of a file, in its encoding and with its byte order mark.

    Another version than the one that was read is a conflict (409, `file_conflict`). A character that the encoding does
    not have is refused by name (422, `input_invalid`).
    """
    viewed = await _writable(request, instance_id)
    encoding = named(data.encoding) if data.encoding else None
    with written_as(await origin_of_edit(request, instance_id, viewed.workspace, path)):
        try:
            entry = await replace_text(
                viewed.workspace, path, data.text, expected_version=data.version, encoding=encoding
            )
        except FileFailed as error:
            if error.errno != "EILSEQ":
                raise
            chosen = encoding or (await stored_text(viewed.workspace, path)).encoding
            letters = chosen.missing(data.text)
            if not letters:
                raise
            raise InputInvalid(
                Phrase(
                    "{encoding}, the encoding of this file, does not have {letters}. Leave that out, or save the "
                    "file as UTF-8.",
                    encoding=chosen.name,
                    letters=letters,
                )
            ) from error
    return entry_out(entry)


@router.post(
    "/instances/{instance_id}/workspace/directories",
    response={201: WorkspaceEntryOut},
    operation_id="make_workspace_directory",
    openapi_extra=_ERRORS,
)
async def workspace_mkdir(request: HttpRequest, instance_id: str, data: DirectoryIn) -> object:
    """Make a directory. Those above it are made, too; one that is there already is a conflict."""
    viewed = await _writable(request, instance_id)
    above = normalise(data.path).rsplit("/", 1)[0] or "/"
    await viewed.workspace.mkdir(above, recursive=True)
    await viewed.workspace.mkdir(data.path)
    return Status(201, entry_out(await _existing(viewed, data.path)))


@router.post(
    "/instances/{instance_id}/workspace/moves",
    response=WorkspaceEntryOut,
    operation_id="move_workspace_entry",
    openapi_extra=_ERRORS,
)
async def workspace_move(request: HttpRequest, instance_id: str, data: MoveIn) -> object:
    """Move or rename an entry. What is at the target is never replaced."""
    viewed = await _writable(request, instance_id)
    if await viewed.workspace.exists(data.target):
        raise failed("EEXIST", normalise(data.target))
    async with naming_alike(viewed.workspace):
        await viewed.workspace.mv(data.source, data.target)
    return entry_out(await _existing(viewed, data.target, follows=False))


@router.post(
    "/instances/{instance_id}/workspace/copies",
    response={201: WorkspaceEntryOut},
    operation_id="copy_workspace_entry",
    openapi_extra=_ERRORS,
)
async def workspace_copy(request: HttpRequest, instance_id: str, data: MoveIn) -> object:
    """Copy a file, or a directory with all in it. What is at the target is never replaced."""
    viewed = await _writable(request, instance_id)
    if await viewed.workspace.exists(data.target):
        raise failed("EEXIST", normalise(data.target))
    async with naming_alike(viewed.workspace):
        await viewed.workspace.cp(data.source, data.target, recursive=True)
    return Status(201, entry_out(await _existing(viewed, data.target)))


@router.post(
    "/instances/{instance_id}/workspace/attachments",
    response={201: WorkspaceEntryOut},
    operation_id="copy_file_to_workspace",
    openapi_extra=_ERRORS,
)
async def workspace_attach(request: HttpRequest, instance_id: str, data: AttachmentIn) -> object:
    """Copy a file of a message into the workspace, under its name or with a number where that is taken."""
    viewed = await _writable(request, instance_id)
    user = caller_of(request).user
    row = await db(open_attachment, user, data.file_id, needs=Role.READER)
    with written_as(origin_of_copy(row, user.pk, is_by_hand=await is_by_hand(request, instance_id))):
        return Status(201, entry_out(await copy_to_workspace(row, viewed.workspace, data.directory)))


@router.post(
    "/instances/{instance_id}/workspace/diff",
    response=DiffOut,
    operation_id="diff_workspace_file",
    openapi_extra=_ERRORS,
)
async def workspace_diff(request: HttpRequest, instance_id: str, data: DiffIn) -> object:
    """Compare a file with a new content for it."""
    viewed = await _viewed(request, instance_id)
    return {"diff": await viewed.workspace.diff_content(data.path, data.content)}


@router.get(
    "/instances/{instance_id}/workspace/search",
    response=FoundFilesOut,
    operation_id="find_workspace_files",
    openapi_extra=_ERRORS,
)
async def workspace_find(
    request: HttpRequest,
    instance_id: str,
    pattern: Annotated[FilePath | None, Query()] = None,
    name: Annotated[NamePart | None, Query()] = None,
    ignored: bool = False,
    limit: Few = 200,
) -> object:
    """Entries whose path matches a glob (`pattern`), or whose name contains a text in either case (`name`).

    What `.gitignore` files exclude is left out, unless `ignored` is given.
    """
    if (pattern is None) == (name is None):
        raise InputInvalid("A search has a `pattern` or a `name`, not both.")
    viewed = await _viewed(request, instance_id)
    wanted = pattern if name is None else containing(name)
    with acting_for(caller_of(request).user.pk):
        found = await viewed.workspace.glob(wanted or "", limit=limit + 1, ignored=ignored)
    return {"items": [entry_out(entry) for entry in found[:limit]], "is_cut": len(found) > limit}


@router.get(
    "/instances/{instance_id}/workspace/archive",
    operation_id="export_workspace",
    openapi_extra={
        "responses": {200: {"description": "A zip file", "content": {"application/zip": {}}}, **_ERRORS["responses"]}
    },
)
async def workspace_export(request: HttpRequest, instance_id: str, path: FilePath = "/") -> HttpResponseBase:
    """A directory with all below it as a zip file, made while it is sent."""
    viewed = await _viewed(request, instance_id)
    name = normalise(path).rsplit("/", 1)[-1] or "files"
    response = StreamingHttpResponse(export_zip(viewed.workspace, path), content_type="application/zip")
    response["Content-Disposition"] = content_disposition_header(True, f"{name}.zip") or "attachment"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return await begun(response)


@router.post(
    "/instances/{instance_id}/workspace/archive",
    response=FileChangesOut,
    operation_id="import_workspace",
    openapi_extra=_ERRORS,
)
async def workspace_import(
    request: HttpRequest, instance_id: str, file: Annotated[UploadedFile, File()], path: FilePath = "/"
) -> object:
    """Unpack a zip, tar or tar.gz file into a directory, all of it or nothing. Files that are there are replaced.

    Hidden files and a `.git` in it come along byte for byte. Links that lead out of it, devices, and names that mean
    anything but a path below the directory are refused.
    """
    viewed = await _writable(request, instance_id)
    with written_as(Origin.FILE):
        changes = await import_archive(viewed.workspace, file.open("rb"), path)
    return {"changes": [_change(each) for each in changes]}


@router.get("/turns/{turn_id}/files", response=TurnFilesOut, operation_id="list_turn_files")
async def turn_files(request: HttpRequest, turn_id: str, step: Step = None, limit: Few = 200) -> object:
    """Files that a turn changed, or one step of it, as they were before it and as it left them.

    Empty once what was kept is older than `THINK_WORKSPACE_BACKUP_DAYS`. Files of a store outside of the database are
    not kept.
    """
    turn = await db(open_turn, caller_of(request).user, turn_id, needs=Role.READER)
    found = await db(lambda: changed_in_turn(turn.pk, step=step, limit=limit + 1))
    items = await asyncio.to_thread(compared, found[:limit])
    return {"items": [asdict(item) for item in items], "has_more": len(found) > limit}


async def _viewed(request: HttpRequest, instance_id: str, needs: Role = Role.READER) -> ViewedWorkspace:
    """The files of a conversation. Those that are not of this conversation alone are its owner's, whatever the role."""
    user = caller_of(request).user
    instance: AgentInstance = await db(open_instance, user, instance_id, needs=needs)
    viewed = await view_workspace(key_of(instance), instance.pk)
    if instance.owner_id == user.pk:
        return viewed
    if not await is_of_conversation(viewed.workspace, instance):
        raise policy.role_needed(Role.OWNER)
    return replace(
        viewed, can_write=viewed.can_write and policy.allows(await db(role_of, user.pk, instance), Role.WRITER)
    )


async def _stored_id(viewed: ViewedWorkspace) -> str | None:
    """The stored workspace; nothing for a store outside of the database, or where nothing was written yet."""
    return await viewed.workspace.workspace_id() if isinstance(viewed.workspace, DatabaseWorkspace) else None


async def _writable(request: HttpRequest, instance_id: str) -> ViewedWorkspace:
    viewed = await _viewed(request, instance_id, Role.WRITER)
    if not viewed.can_write:
        raise failed("EPERM", "/", "these files can only be read")
    return viewed


async def _existing(viewed: ViewedWorkspace, path: str, *, follows: bool = True) -> Entry:
    async with naming_alike(viewed.workspace):
        entry = await (viewed.workspace.stat(path) if follows else viewed.workspace.lstat(path))
        if entry is None:
            raise failed("ENOENT", normalise(path))
        return entry


async def pieces_of(request: HttpRequest) -> AsyncIterator[bytes]:
    """The body in pieces; the server has it in memory, or in a temporary file where it is large."""
    while piece := request.read(PIECE_BYTES):
        yield piece


def entry_out(entry: Entry) -> dict[str, object]:
    """An entry as the API shows it (`WorkspaceEntryOut`)."""
    return {
        "path": entry.path,
        "name": entry.name,
        "kind": entry.kind.value,
        "size": entry.size,
        "media_type": entry.media_type,
        "target": entry.target,
        "version": entry.version,
        "created_at": entry.created_at,
        "modified_at": entry.modified_at,
    }


def _change(change: FileChange) -> dict[str, object]:
    return {"kind": change.kind, "path": change.path, "entry_kind": change.entry_kind.value}
