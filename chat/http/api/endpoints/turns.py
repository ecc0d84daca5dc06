"""API operations on turns: start, list, look, cancel. The stream of a turn is in `stream.py`."""

from dataclasses import asdict, replace
from typing import Annotated, cast

from django.http import HttpRequest
from ninja import Header, Query, Router, Status
from pydantic import StringConstraints

from chat.access.auth import open_instance, open_turn
from chat.errors import InputInvalid, TurnConflict
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.common import AdmittedTurnOut, CancelOut, ResumedOut, StepOut, TurnIn, TurnOut, TurnPageOut
from chat.http.api.schemas.waiting import QueueIn, WaitingMessageIn, WaitingMessageOut
from chat.instances.rows import key_of
from chat.members.selectors import author_of
from chat.models import Role
from chat.reads import transcripts
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Continue, Edit, Intake, Regenerate, Submit
from chat.turns.admission.overlap import delivery_of
from chat.turns.admission.stop import cancel_turn, resume_turn
from chat.turns.admission.waiting import edit_waiting, order_waiting
from sessions_app.core.messages.shapes import NewMessage
from thinkproject.kernel.phrases import Phrase

router = Router(tags=["turns"])
Limit = Annotated[int, Query(ge=1, le=200)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=128)]


@router.post(
    "/instances/{instance_id}/turns",
    response={202: AdmittedTurnOut},
    operation_id="create_turn",
    openapi_extra=declares(409, 429),
)
def turn_create(
    request: HttpRequest,
    instance_id: str,
    data: TurnIn,
    idempotency_key: Annotated[Key | None, Header(alias="Idempotency-Key")] = None,
) -> object:
    """Ask for an answer. Accepted means stored: the turn goes on whatever happens to this connection.

    The same `Idempotency-Key` or `request_id` again gives the same turn.
    """
    user = caller_of(request).user
    instance = open_instance(user, instance_id, needs=Role.WRITER)
    admission = admit(key_of(instance), replace(_turn_request(data, idempotency_key), actor_id=user.pk))
    view = transcripts.turn_view_of(admission.turn.id)
    return Status(202, AdmittedTurnOut(**asdict(view), accepted=admission.is_new))


@router.get("/instances/{instance_id}/turns", response=TurnPageOut, operation_id="list_turns")
def turn_list(
    request: HttpRequest,
    instance_id: str,
    cursor: Annotated[int | None, Query(ge=1)] = None,
    limit: Limit = 50,
) -> TurnPageOut:
    """Turns of a conversation, newest first."""
    instance = open_instance(caller_of(request).user, instance_id, needs=Role.READER)
    views = transcripts.turn_page(instance.id, before=cursor, limit=limit + 1)
    page = views[:limit]
    has_more = len(views) > limit
    return TurnPageOut(
        items=[TurnOut(**asdict(view)) for view in page],
        has_more=has_more,
        next_cursor=str(page[-1].position) if has_more else None,
    )


@router.get("/turns/{turn_id}", response=TurnOut, operation_id="get_turn")
def turn_detail(request: HttpRequest, turn_id: str) -> object:
    """One turn: its status, usage and error."""
    return transcripts.turn_view(open_turn(caller_of(request).user, turn_id, needs=Role.READER))


@router.post("/turns/{turn_id}/cancel", response=CancelOut, operation_id="cancel_turn")
def turn_cancel(request: HttpRequest, turn_id: str) -> CancelOut:
    """Stop a turn; its partial answer is kept. Safe to call twice, and on a turn that has ended."""
    return CancelOut(cancelled=cancel_turn(open_turn(caller_of(request).user, turn_id, needs=Role.WRITER).id))


@router.patch(
    "/turns/{turn_id}/message",
    response=WaitingMessageOut,
    operation_id="edit_waiting_message",
    openapi_extra=declares(409),
)
def turn_message(request: HttpRequest, turn_id: str, data: WaitingMessageIn) -> WaitingMessageOut:
    """Change a message of yours that waits for its turn. 409 for another person's, which this turn has the rights of.

    409 as well where it does not wait any more, or has been changed meanwhile.
    """
    user = caller_of(request).user
    turn = open_turn(user, turn_id, needs=Role.WRITER)
    if turn.author != author_of(user.pk, turn.instance.owner_id):
        raise TurnConflict("Only the person who wrote this message can change it.")
    message = cast("NewMessage", data.message.dict(exclude_none=True))
    return WaitingMessageOut(version=edit_waiting(turn.id, message, version=data.version))


@router.put(
    "/instances/{instance_id}/queue", response={204: None}, operation_id="order_queue", openapi_extra=declares(409)
)
def queue_order(request: HttpRequest, instance_id: str, data: QueueIn) -> object:
    """Order the turns that wait. 409 where others wait by now than are named: nothing is changed then."""
    order_waiting(key_of(open_instance(caller_of(request).user, instance_id)), data.turn_ids)
    return Status(204, None)


@router.post("/turns/{turn_id}/resume", response=ResumedOut, operation_id="resume_turn", openapi_extra=declares(409))
def turn_resume(request: HttpRequest, turn_id: str) -> ResumedOut:
    """Have an interrupted turn go on from where it was cut. Settled steps are not run again; safe to call twice.

    A turn is interrupted when its worker was lost and it is not recovered by itself (`error_code` `paused`) or any more
    (`interrupted`). 409 where the conversation has gone on since.
    """
    return ResumedOut(resumed=resume_turn(open_turn(caller_of(request).user, turn_id).id))


@router.get("/turns/{turn_id}/steps", response=list[StepOut], operation_id="list_turn_steps")
def turn_steps(request: HttpRequest, turn_id: str) -> object:
    """The settled steps of a turn: model calls and tool calls."""
    return transcripts.turn_steps(open_turn(caller_of(request).user, turn_id, needs=Role.READER))


def _turn_request(data: TurnIn, key: str | None) -> TurnRequest:
    intake = _intake(data)
    return TurnRequest(
        intake=intake,
        request_id=data.request_id or "",
        idempotency_key=key,
        body=data.body,
        delivery=delivery_of(data.delivery),
        is_stopped=not data.resume,
    )


def _intake(data: TurnIn) -> Intake:
    match data.trigger:
        case "submit-message":
            message = _message(data)
            return Submit(
                message=message, parent_id=data.parent_id, parent_is_explicit="parent_id" in data.model_fields_set
            )
        case "edit-message":
            return Edit(message_id=_target(data), message=_message(data))
        case "regenerate-message":
            return Regenerate(message_id=_target(data))
        case "continue":
            if data.message is not None or data.message_id is not None:
                raise InputInvalid(
                    "A turn of trigger 'continue' goes on from the end of what is shown, without a message."
                )
            return Continue()


def _target(data: TurnIn) -> str:
    if data.message_id is None:
        raise InputInvalid(Phrase("A turn of trigger {trigger!r} needs `message_id`.", trigger=data.trigger))
    return data.message_id


def _message(data: TurnIn) -> NewMessage:
    if data.message is None:
        raise InputInvalid(Phrase("A turn of trigger {trigger!r} needs `message`.", trigger=data.trigger))
    message = cast("NewMessage", data.message.dict(exclude_none=True))
    return {**message, "role": "user"}
