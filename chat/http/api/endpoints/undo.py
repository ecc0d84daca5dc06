"""API operations that take back what turns did, and bring it back: files, messages, effects of actions."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router, Status

from chat.access.auth import open_instance, open_turn
from chat.errors import UndoImpossible, WorkspaceMissing
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.undo import (
    EffectUndoneOut,
    OverwriteIn,
    RedoIn,
    RedoPreviewOut,
    RevertOut,
    RevertsOut,
    UndoEffectOut,
    UndoFileOut,
    UndoIn,
    UndoneOut,
    UndoPreviewOut,
)
from chat.http.api.schemas.workspace import TurnFileOut, TurnFilesOut
from chat.instance.workspaces import view_workspace
from chat.instances.rows import key_of
from chat.models import AgentInstance, Revert, Role
from chat.runtime import undo
from chat.user_code.call_hook import AgentCodeFailed
from thinkproject.kernel.aio import db
from tools_app.actions.undoing import undo_effect
from tools_app.core.action_rules import UndoStatus
from tools_app.models import ActionRecord
from tools_app.workspace.turn_files import compared
from tools_app.workspace.undo import KEEPING, Undoable, differences_of

router = Router(tags=["undo"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])
MAX_FILES = 200
MAX_CONFLICTS_SHOWN = 50
Few = Annotated[int, Query(ge=1, le=1000)]


@router.get("/turns/{turn_id}/undo", response=UndoPreviewOut, operation_id="preview_undo", openapi_extra=declares(500))
async def undo_preview(request: HttpRequest, turn_id: str) -> object:
    """Look at what an undo of a turn, and of all that followed it, would do: conflicts, and what cannot be undone."""
    turn = await db(open_turn, caller_of(request).user, turn_id, needs=Role.READER)
    found = await db(undo.preview_undo, turn)
    return await _preview(found, turn.instance)


@router.post("/turns/{turn_id}/undo", response={201: UndoneOut}, operation_id="undo_turn", openapi_extra=declares(409))
async def undo_create(request: HttpRequest, turn_id: str, data: UndoIn) -> object:
    """Take a turn back with all that followed it: its files, its messages (nothing is deleted), or both at once.

    A file that another hand has changed since stays as it is, unless `overwrite` names it.
    """
    caller = caller_of(request).user
    turn = await db(open_turn, caller, turn_id, needs=Role.WRITER)
    choices = _choices(data.overwrite)
    done = await db(
        lambda: undo.undo_turn(turn, files=data.files, messages=data.messages, actor_id=caller.pk, choices=choices)
    )
    return Status(201, _undone(done))


@router.post(
    "/turns/{turn_id}/undo/effects/{effect_id}",
    response=EffectUndoneOut,
    operation_id="undo_effect",
    openapi_extra=declares(409, 500),
)
async def undo_effect_run(request: HttpRequest, turn_id: str, effect_id: int) -> object:
    """Run the compensation of one effect that an undo of this turn is about, once. Nothing else is undone by it.

    As for a call, an approver decides.
    """
    turn = await db(open_turn, caller_of(request).user, turn_id, needs=Role.APPROVER)
    if effect_id not in {each.pk for each in await db(undo.effects_since, turn)}:
        raise UndoImpossible
    return {"output": await undo_effect(effect_id)}


@router.get(
    "/instances/{instance_id}/redo", response=RedoPreviewOut, operation_id="preview_redo", openapi_extra=declares(500)
)
async def redo_preview(request: HttpRequest, instance_id: str) -> object:
    """Look at what a redo would do: it takes back the newest undo, until there is another turn."""
    instance = await db(open_instance, caller_of(request).user, instance_id, needs=Role.READER)
    revert = await db(undo.redoable, instance)
    if revert is None:
        return {"revert": None, "preview": None}
    found = await db(undo.preview_redo, revert)
    return {"revert": _revert(revert), "preview": await _preview(found, instance)}


@router.post(
    "/instances/{instance_id}/redo", response={201: UndoneOut}, operation_id="redo_turn", openapi_extra=declares(409)
)
async def redo_create(request: HttpRequest, instance_id: str, data: RedoIn) -> object:
    """Take the newest undo back, which `revert_id` names. Conflicts are treated as by an undo."""
    caller = caller_of(request).user
    instance = await db(open_instance, caller, instance_id, needs=Role.WRITER)
    revert = await db(undo.redoable, instance)
    if revert is None or revert.pk != data.revert_id:
        raise UndoImpossible
    choices = _choices(data.overwrite)
    done = await db(lambda: undo.redo(revert, actor_id=caller.pk, choices=choices))
    return Status(201, _undone(done))


@router.get("/instances/{instance_id}/reverts", response=RevertsOut, operation_id="list_reverts")
async def revert_list(request: HttpRequest, instance_id: str, limit: Few = 50) -> object:
    """Undos and redos of a conversation, newest first."""
    instance = await db(open_instance, caller_of(request).user, instance_id, needs=Role.READER)
    return {"items": [_revert(row) for row in await db(lambda: undo.reverts_of(instance, limit=limit))]}


@router.get("/instances/{instance_id}/changes", response=TurnFilesOut, operation_id="list_conversation_changes")
async def conversation_changes(request: HttpRequest, instance_id: str, limit: Few = 200) -> object:
    """Files that the turns of a conversation have changed, as they were before the first and as the last one left them.

    What was undone counts: a file that is as it was is not listed. As far back as backups are kept.
    """
    instance = await db(open_instance, caller_of(request).user, instance_id, needs=Role.READER)
    found = await db(lambda: undo.changed_in_conversation(instance, limit=limit + 1))
    items = await asyncio.to_thread(compared, found[:limit])
    return {"items": [asdict(item) for item in items], "has_more": len(found) > limit}


async def _preview(found: undo.UndoPreview, instance: AgentInstance) -> UndoPreviewOut:
    files = [each for each in found.files if each.is_file]
    hindered = [each for each in files if each.hindrance]
    conflicts = [each for each in hindered if each.hindrance == "changed"]
    shown = [*conflicts, *(each for each in hindered if each.hindrance != "changed")]
    shown = [*shown, *(each for each in files if not each.hindrance)][:MAX_FILES]
    first = conflicts[:MAX_CONFLICTS_SHOWN]
    differing = await asyncio.to_thread(compared, await db(differences_of, first))
    changes = {each.path: TurnFileOut(**asdict(each)) for each in differing}
    return UndoPreviewOut(
        files=[_file(each, changes.get(each.path) if each in first else None) for each in shown],
        has_more=len(files) > len(shown),
        file_count=len(files) - len(hindered),
        conflict_count=len(conflicts),
        left_count=len(hindered) - len(conflicts),
        leaf_id=found.leaf_id,
        question=found.question,
        turn_count=found.turn_count,
        effects=[_effect(row) for row in found.effects],
        is_busy=found.is_busy,
        keeps_files=await _keeps_files(instance),
    )


async def _keeps_files(instance: AgentInstance) -> bool:
    try:
        viewed = await view_workspace(key_of(instance), instance.pk)
    except (WorkspaceMissing, AgentCodeFailed):
        return True  # without files there is nothing that would not be kept
    return isinstance(viewed.workspace, KEEPING)


def _choices(overwrite: Sequence[OverwriteIn]) -> dict[int, int]:
    return {each.id: each.version for each in overwrite}


def _undone(done: undo.Undone) -> UndoneOut:
    left = [_file(each, None) for each in done.left if each.is_file]
    return UndoneOut(revert=_revert(done.revert), left=left[:MAX_FILES])


def _file(each: Undoable, changes: TurnFileOut | None) -> UndoFileOut:
    return UndoFileOut(
        id=each.id,
        version=each.version,
        path=each.path,
        kind=each.kind or each.kind_now,
        fate=each.fate,
        size=each.size,
        hindrance=each.hindrance,
        changes=changes,
    )


def _effect(row: ActionRecord) -> UndoEffectOut:
    return UndoEffectOut(
        id=row.pk,
        turn_id=row.turn_id,
        action=row.action,
        input=row.input,
        undo_status=UndoStatus(row.undo_status).value,
        can_undo=bool(row.undo) and row.undo_status in {UndoStatus.NONE, UndoStatus.FAILED},
    )


def _revert(row: Revert) -> RevertOut:
    return RevertOut(
        id=row.pk,
        instance_id=row.instance_id,
        turn_id=row.turn_id,
        redoes=row.redoes_id,
        includes_files=row.includes_files,
        includes_messages=row.includes_messages,
        file_count=row.file_count,
        left_count=row.left_count,
        created_at=row.created_at,
    )
