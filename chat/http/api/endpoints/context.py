"""API operations on the context of sessions: blocks, loaded documents, prompt, and the history of changes.

Async, because the blocks are those of the agent's class, whose code runs.
"""

from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import StringConstraints

from chat.access.auth import open_session
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.context import (
    BlockIn,
    BlockOut,
    ChangeOut,
    ChangePageOut,
    ContextOut,
    EntryIn,
    EntryOut,
    EntryPageOut,
)
from chat.instance import context as runtime_context
from chat.instance.context import ContextView
from chat.instances.rows import key_of
from sessions_app.context.history import Change, ContextActor, ContextOwner, list_changes
from sessions_app.context.session_context import SessionContext
from sessions_app.core.context.context_blocks import Block, Entry
from thinkproject.kernel.aio import db

router = Router(tags=["context"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])
Limit = Annotated[int, Query(ge=1, le=200)]
Few = Annotated[int, Query(ge=1, le=50)]
Word = Annotated[str, StringConstraints(max_length=400, pattern=r"^[^\x00]*$")]


@router.get(
    "/sessions/{session_id}/context", response=ContextOut, operation_id="get_context", openapi_extra=declares(500)
)
async def context_detail(request: HttpRequest, session_id: str) -> ContextOut:
    """The context of a session: blocks, loaded documents, the system prompt."""
    return _encode(await runtime_context.context_view(await _open(request, session_id)))


@router.post(
    "/sessions/{session_id}/prompt", response=ContextOut, operation_id="refresh_prompt", openapi_extra=declares(500)
)
async def prompt_refresh(request: HttpRequest, session_id: str) -> ContextOut:
    """Render the system prompt anew, where the session keeps one."""
    context = await _open(request, session_id)
    await runtime_context.refresh(context)
    return _encode(await runtime_context.context_view(context))


@router.put(
    "/sessions/{session_id}/context/{label}",
    response=BlockOut,
    operation_id="write_block",
    openapi_extra=declares(409, 500),
)
async def block_write(request: HttpRequest, session_id: str, label: str, data: BlockIn) -> BlockOut:
    """Replace the text of a block. The next turn reads it, also where the session keeps its prompt."""
    return _block(
        await runtime_context.write_block(await _open(request, session_id), label, data.content, _by(request))
    )


@router.delete(
    "/sessions/{session_id}/context/{label}",
    response={204: None},
    operation_id="forget_block",
    openapi_extra=declares(409, 500),
)
async def block_forget(request: HttpRequest, session_id: str, label: str, history: bool = False) -> object:
    """Clear a block; `history` also erases its earlier texts from the list of changes."""
    await runtime_context.forget_block(await _open(request, session_id), label, _by(request), erases_history=history)
    return Status(204, None)


@router.get(
    "/sessions/{session_id}/context/{label}/entries",
    response=EntryPageOut,
    operation_id="list_entries",
    openapi_extra=declares(409, 500),
)
async def entry_list(
    request: HttpRequest, session_id: str, label: str, after: Word = "", limit: Few = 50
) -> EntryPageOut:
    """Entries of a block of documents or of a searchable one."""
    entries = await runtime_context.entries_of(await _open(request, session_id), label, after=after, limit=limit + 1)
    return entry_page(entries, limit)


@router.put(
    "/sessions/{session_id}/context/{label}/entries/{key}",
    response={204: None},
    operation_id="write_entry",
    openapi_extra=declares(409, 500),
)
async def entry_write(request: HttpRequest, session_id: str, label: str, key: str, data: EntryIn) -> object:
    """Store an entry, new or again."""
    await runtime_context.write_entry(await _open(request, session_id), label, to_entry(key, data), _by(request))
    return Status(204, None)


@router.delete(
    "/sessions/{session_id}/context/{label}/entries/{key}",
    response={204: None},
    operation_id="delete_entry",
    openapi_extra=declares(409, 500),
)
async def entry_delete(request: HttpRequest, session_id: str, label: str, key: str) -> object:
    """Forget an entry."""
    await runtime_context.delete_entry(await _open(request, session_id), label, key, _by(request))
    return Status(204, None)


@router.get("/sessions/{session_id}/changes", response=ChangePageOut, operation_id="list_context_changes")
async def change_list(
    request: HttpRequest, session_id: str, subject: Word = "", before: int | None = None, limit: Limit = 50
) -> ChangePageOut:
    """Changes of this session's context, newest first; filtered by `subject`, for example `block:memory`."""
    await db(open_session, caller_of(request).user, session_id)
    owner = ContextOwner(session_id=session_id)
    return await db(change_page, owner, subject, before, limit)


def change_page(owner: ContextOwner, subject: str, before: int | None, limit: int) -> ChangePageOut:
    """A page of a owner's changes."""
    changes = list_changes(owner, subject=subject, before_id=before, limit=limit + 1)
    shown = changes[:limit]
    return ChangePageOut(
        items=[_change(change) for change in shown], next_before=shown[-1].id if len(changes) > limit else None
    )


def entry_page(entries: list[Entry], limit: int) -> EntryPageOut:
    """A page of entries, one more having been read than it holds."""
    shown = entries[:limit]
    items = [EntryOut(key=e.key, title=e.title, description=e.description, content=e.content) for e in shown]
    return EntryPageOut(items=items, next_after=shown[-1].key if len(entries) > limit else None)


def to_entry(key: str, data: EntryIn) -> Entry:
    """The entry of a request."""
    return Entry(key=key, content=data.content, title=data.title, description=data.description)


async def _open(request: HttpRequest, session_id: str) -> SessionContext:
    instance = await db(open_session, caller_of(request).user, session_id)
    return await runtime_context.open_session_context(key_of(instance), session_id)


def _by(request: HttpRequest) -> ContextActor:
    return ContextActor(via="api", user_id=caller_of(request).user.pk)


def _encode(view: ContextView) -> ContextOut:
    return ContextOut.model_validate(view, from_attributes=True)


def _block(block: Block) -> BlockOut:
    return BlockOut.model_validate(block, from_attributes=True)


def _change(change: Change) -> ChangeOut:
    return ChangeOut.model_validate(change, from_attributes=True)
