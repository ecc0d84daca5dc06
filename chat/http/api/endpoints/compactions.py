"""API operations on compactions: ask for one, list and read summaries, reword and undo them."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import StringConstraints

from chat.access.auth import open_compaction, open_instance, open_session
from chat.conversations import compactions
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.common import Input
from chat.http.api.schemas.from_values import shows
from chat.models import Role
from chat.turns.state.compaction_queue import MAX_INSTRUCTIONS, request_compaction
from sessions_app.compactions.services import MAX_SUMMARY_CHARS, CompactionView, get_compaction
from sessions_app.compactions.services import compactions as compactions_of

router = Router(tags=["compactions"])


class CompactIn(Input):
    """A wish for a compaction."""

    instructions: Annotated[str, StringConstraints(max_length=MAX_INSTRUCTIONS, pattern=r"^[^\x00]*$")] = ""


class CompactOut(Schema):
    """A compaction that waits for its place behind the turns that were accepted before. `id`: of its fiber."""

    id: str


class CompactionPatch(Input):
    """Another text for a summary."""

    summary: Annotated[str, StringConstraints(min_length=1, max_length=MAX_SUMMARY_CHARS, pattern=r"^[^\x00]*$")]


@shows(CompactionView)
class CompactionOut(Schema):
    """A summary that models read instead of the messages from the first to the last.

    `trigger`: manual, auto, overflow or added (by code). Tokens are of the whole history, as estimated.
    """


@router.post(
    "/instances/{instance_id}/compact",
    response={202: CompactOut},
    operation_id="compact_instance",
    openapi_extra=declares(409, 429),
    tags=["compactions"],
)
def instance_compact(request: HttpRequest, instance_id: str, data: CompactIn) -> object:
    """Have a summary made of the middle of the conversation, behind the turns that wait. Nothing is deleted.

    The frames `cf_agent_session` and `cf_agent_session_error` report its end; the list shows the result.
    """
    user = caller_of(request).user
    instance = open_instance(user, instance_id)
    return Status(202, {"id": request_compaction(instance, instructions=data.instructions, user_id=user.pk)})


@router.get("/instances/{instance_id}/compactions", response=list[CompactionOut], operation_id="list_compactions")
def compaction_list(request: HttpRequest, instance_id: str, undone: bool = False) -> object:
    """Compactions of the current session, oldest first; `undone` includes undone ones."""
    instance = open_instance(caller_of(request).user, instance_id, needs=Role.READER)
    return compactions_of(instance.session_id or "", with_undone=undone)


@router.get("/sessions/{session_id}/compactions", response=list[CompactionOut], operation_id="list_session_compactions")
def session_compactions(request: HttpRequest, session_id: str, undone: bool = False) -> object:
    """Summaries of one history, as of the current one."""
    open_session(caller_of(request).user, session_id, needs=Role.READER)
    return compactions_of(session_id, with_undone=undone)


@router.get("/compactions/{compaction_id}", response=CompactionOut, operation_id="get_compaction")
def compaction_detail(request: HttpRequest, compaction_id: str) -> CompactionView:
    """One summary."""
    open_compaction(caller_of(request).user, compaction_id, needs=Role.READER)
    return get_compaction(compaction_id)


@router.patch("/compactions/{compaction_id}", response=CompactionOut, operation_id="update_compaction")
def compaction_update(request: HttpRequest, compaction_id: str, data: CompactionPatch) -> CompactionView:
    """Reword a summary; it is marked as edited, and who did it is kept."""
    user = caller_of(request).user
    return compactions.reword(open_compaction(user, compaction_id), compaction_id, data.summary, user_id=user.pk)


@router.post("/compactions/{compaction_id}/undo", response=CompactionOut, operation_id="undo_compaction")
def compaction_undo(request: HttpRequest, compaction_id: str) -> CompactionView:
    """Have the model read the messages again instead of the summary. Safe to call twice."""
    user = caller_of(request).user
    return compactions.undo(open_compaction(user, compaction_id), compaction_id, user_id=user.pk)
