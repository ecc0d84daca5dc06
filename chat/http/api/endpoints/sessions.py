"""API operations on sessions: listing, switching, forks, exports and imports."""

from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Annotated

from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header
from ninja import File, Form, Query, Router, Status
from ninja.files import UploadedFile

from chat.access.auth import open_agent, open_instance, open_session
from chat.conversations import importing
from chat.conversations.bulk import MAX_IDS, own_ids
from chat.conversations.changes import new_instance_name
from chat.conversations.exporting import ExportFormat, all_name, export_all, export_conversation
from chat.conversations.fork import fork_instance
from chat.conversations.list import instance_summary
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.file_response import begun
from chat.http.api.schemas.common import Id, InstanceOut, Name, Title
from chat.http.api.schemas.sessions import ForkIn, ImportedOut, SessionChoiceIn, SessionIn, SessionOut, SessionPatch
from chat.instances.rows import key_of
from chat.models import AgentInstance, Role
from chat.runtime import sessions as runtime_sessions
from sessions_app.messages import services as messages_services
from sessions_app.messages import sessions as messages_sessions
from thinkproject.kernel.aio import db

router = Router(tags=["conversations"])
LINES_A_PIECE = 64
_EXPORT = (
    "One JSON object a line; with `format=markdown` the shown path to read; with `open-webui` or `librechat` JSON "
    "that these products import, which says what it leaves out as `left_out`."
)
_EXPORTS = (
    "A zip with one file a conversation, in the formats of `export_session`; with `format=open-webui` one JSON list. "
    "Those that were put away are among them. With `id`, up to 100 times, these alone. "
    "`left-out.txt` in the zip says what a format has no place for."
)
_FILE = {"schema": {"type": "string", "format": "binary"}}


@router.get("/instances/{instance_id}/sessions", response=list[SessionOut], operation_id="list_sessions")
def session_list(request: HttpRequest, instance_id: str) -> object:
    """Histories inside a conversation: pinned ones first, then the newest change. Most agents keep one."""
    return runtime_sessions.stored_sessions(_opened(request, instance_id, Role.READER))


@router.post(
    "/instances/{instance_id}/sessions",
    response={201: SessionOut},
    operation_id="create_session",
    openapi_extra=declares(409, 429),
)
def session_create(request: HttpRequest, instance_id: str, data: SessionIn) -> object:
    """Begin an empty history and make it the current one, where the agent keeps several."""
    return Status(201, runtime_sessions.create_session(key_of(_opened(request, instance_id)), data.name))


@router.put("/instances/{instance_id}/session", response=SessionOut, operation_id="switch_session")
def session_switch(request: HttpRequest, instance_id: str, data: SessionChoiceIn) -> object:
    """Switch the current session. Active turns of the previous one continue in the background."""
    instance = _opened(request, instance_id)
    runtime_sessions.switch_session(key_of(instance), data.session_id)
    instance.session_id = data.session_id
    return runtime_sessions.stored_session(instance, data.session_id)


@router.patch("/sessions/{session_id}", response=SessionOut, operation_id="update_session")
def session_update(request: HttpRequest, session_id: str, data: SessionPatch) -> object:
    """Rename, pin or archive a session, or the reverse; turn its automatic compaction on or off."""
    instance = open_session(caller_of(request).user, session_id)
    if data.name is not None:
        runtime_sessions.rename_session(key_of(instance), session_id, data.name)
    if data.pinned is not None:
        messages_sessions.pin_session(session_id, is_pinned=data.pinned)
    if data.archived is not None:
        messages_sessions.archive_session(session_id, is_archived=data.archived)
    if "auto_compaction" in data.model_fields_set:
        messages_services.set_auto_compaction(session_id, data.auto_compaction)
    return runtime_sessions.stored_session(instance, session_id)


@router.delete(
    "/sessions/{session_id}", response={204: None}, operation_id="delete_session", openapi_extra=declares(409)
)
def session_delete(request: HttpRequest, session_id: str) -> object:
    """Remove a history, where the agent keeps several. A turn that runs in it is cancelled."""
    runtime_sessions.delete_session(key_of(open_session(caller_of(request).user, session_id)), session_id)
    return Status(204, None)


@router.post(
    "/instances/{instance_id}/fork",
    response={201: InstanceOut},
    operation_id="fork_instance",
    openapi_extra=declares(409, 429),
)
def instance_fork(request: HttpRequest, instance_id: str, data: ForkIn) -> object:
    """Begin a conversation that shares this one's path up to a message and goes on alone."""
    instance = _opened(request, instance_id)
    made = fork_instance(instance, data.message_id, session_id=data.session_id or "", title=data.title)
    return Status(201, instance_summary(made.pk))


@router.get(
    "/sessions/{session_id}/export",
    operation_id="export_session",
    description=_EXPORT,
    auth=[AsyncTokenAuth(), AsyncSessionAuth()],
    openapi_extra={
        "responses": {
            200: {
                "description": "The history",
                "content": {"application/x-ndjson": {}, "text/markdown": {}, "application/json": {}},
            }
        },
    },
)
async def session_export(
    request: HttpRequest,
    session_id: str,
    format: ExportFormat = ExportFormat.JSONL,  # noqa: A002 - its name
) -> StreamingHttpResponse:
    """Write out a history with all its branches, a piece at a time: for its owner with memory and costs."""
    user = caller_of(request).user
    instance = await db(open_session, user, session_id, needs=Role.READER)
    is_owner = instance.owner_id == user.pk
    pieces = await db(lambda: export_conversation(instance, session_id, format, is_owner=is_owner))
    return await _download(
        _encoded(pieces), LINES_A_PIECE, name=f"{session_id}.{format.extension}", media_type=format.media_type
    )


@router.get(
    "/exports",
    operation_id="export_conversations",
    description=_EXPORTS,
    auth=[AsyncTokenAuth(), AsyncSessionAuth()],
    openapi_extra={
        "responses": {
            200: {
                "description": "All conversations",
                "content": {"application/zip": _FILE, "application/json": {}},
            }
        },
    },
)
async def conversations_export(
    request: HttpRequest,
    format: ExportFormat = ExportFormat.JSONL,  # noqa: A002 - its name
    id: Annotated[list[Id], Query(max_length=MAX_IDS)] = [],  # noqa: A002, B006 - its name, and never changed
) -> StreamingHttpResponse:
    """Write out all conversations of the caller with their current histories, one at a time; with `id` these alone."""
    user_id = caller_of(request).user.pk
    only = await db(own_ids, user_id, id) if id else []
    pieces = await db(lambda: export_all(user_id, format, only=only))
    name = all_name(format)
    media_type = "application/zip" if name.endswith(".zip") else "application/json"
    return await _download(pieces, 1, name=name, media_type=media_type)


@router.post(
    "/imports", response={201: ImportedOut}, operation_id="import_conversation", openapi_extra=declares(404, 409, 429)
)
def conversation_import(
    request: HttpRequest,
    file: Annotated[UploadedFile, File()],
    agent: Annotated[Name, Form()],
    title: Annotated[Title | None, Form()] = None,
) -> object:
    """Make a conversation of an exported history. A file that is wrong anywhere leaves nothing."""
    opened = open_agent(caller_of(request).user, agent, new_instance_name())
    return Status(201, importing.import_conversation(opened, file, title=title or ""))


@router.post(
    "/instances/{instance_id}/imports",
    response={201: ImportedOut},
    operation_id="import_session",
    openapi_extra=declares(409, 429),
)
def session_import(request: HttpRequest, instance_id: str, file: Annotated[UploadedFile, File()]) -> object:
    """Make a history of an exported one, where the agent keeps several. The current one stays current."""
    return Status(201, importing.import_history(_opened(request, instance_id), file))


def _opened(request: HttpRequest, instance_id: str, needs: Role = Role.OWNER) -> AgentInstance:
    return open_instance(caller_of(request).user, instance_id, needs=needs)


async def _download(pieces: Iterator[bytes], count: int, *, name: str, media_type: str) -> StreamingHttpResponse:
    """An answer that is saved as a file. `count`: pieces that are read at once."""
    response = StreamingHttpResponse(_read(pieces, count), content_type=media_type)
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return await begun(response)


async def _read(pieces: Iterator[bytes], count: int) -> AsyncIterator[bytes]:
    """Read the next pieces on the database bridge once the client has taken the previous ones."""
    while (found := await db(_next, pieces, count)) is not None:
        yield found


def _next(pieces: Iterator[bytes], count: int) -> bytes | None:
    found = list(islice(pieces, count))
    return b"".join(found) if found else None


def _encoded(pieces: Iterator[str]) -> Iterator[bytes]:
    return (piece.encode(errors="replace") for piece in pieces)
