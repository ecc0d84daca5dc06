"""API operations on tool calls that are answered from outside a turn: open calls, decisions, results, events."""

from dataclasses import asdict
from typing import Annotated, Literal

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import StringConstraints

from chat.access.auth import open_instance
from chat.errors import CallNotFound, InputInvalid
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.calls import (
    ActionOut,
    ActionsOut,
    AnsweredOut,
    ApprovalEventOut,
    ApprovalIn,
    ChoiceOut,
    DecisionsIn,
    OfferOut,
    OpenCallOut,
    PendingApprovalOut,
    PendingApprovalsOut,
    ResultIn,
    SourceOut,
)
from chat.instances.rows import key_of
from chat.models import AgentInstance, Role, Turn
from chat.reads.actions import own_effects
from chat.reads.approvals import PendingApproval, pending_approvals
from chat.turns.admission.continuation import Replied, decide_all, reply_to_call, require_call
from chat.turns.admission.tool_answers import Reply, pending_calls
from thinkproject.kernel.filling import filled
from thinkproject.kernel.jsonvalue import fingerprint
from thinkproject.kernel.languages import translate
from tools_app.calls.selectors import approval_events
from tools_app.calls.services import Actor
from tools_app.core.action_rules import ActionStatus, UndoStatus
from tools_app.core.permissions.rules import RuleLevel
from tools_app.core.questions import Question, question_of, title_of
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ActionRecord, ToolCallRecord

router = Router(tags=["calls"])
Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]


@router.get("/approvals", response=PendingApprovalsOut, operation_id="list_pending_approvals")
def approval_list(request: HttpRequest, cursor: Cursor = "", limit: Limit = 50) -> PendingApprovalsOut:
    """The calls in all conversations that you are in, which you can decide now, newest first.

    Decide one with `POST /instances/{instance_id}/calls/{call_id}/approval`.
    """
    page = pending_approvals(caller_of(request).user.pk, cursor=cursor, limit=limit)
    items = [_pending(item) for item in page.items]
    return PendingApprovalsOut(items=items, count=page.count, next_cursor=page.next_cursor)


@router.get("/actions", response=ActionsOut, operation_id="list_actions")
def action_list(request: HttpRequest, cursor: Cursor = "", limit: Limit = 50) -> ActionsOut:
    """Effects of actions in all your conversations, newest first."""
    rows, next_cursor = own_effects(caller_of(request).user.pk, cursor=cursor, limit=limit)
    return ActionsOut(items=[_effect(row) for row in rows], next_cursor=next_cursor)


@router.get("/instances/{instance_id}/calls", response=list[OpenCallOut], operation_id="list_open_calls")
def call_list(request: HttpRequest, instance_id: str) -> list[OpenCallOut]:
    """Calls that wait for a decision or for a client's result, oldest first."""
    instance = open_instance(caller_of(request).user, instance_id, needs=Role.READER)
    rows = pending_calls(instance)
    turns = dict(Turn.objects.filter(pk__in={row.turn_id for row in rows}).values_list("pk", "assistant_id"))
    return [_open_call(row, turns.get(row.turn_id, "")) for row in rows]


@router.post(
    "/instances/{instance_id}/calls/{call_id}/approval",
    response=AnsweredOut,
    operation_id="decide_call",
    openapi_extra=declares(409),
)
def call_decide(request: HttpRequest, instance_id: str, call_id: str, data: ApprovalIn) -> AnsweredOut:
    """Approve or deny a call. The first decision counts; a later one changes nothing and returns the first.

    With `input`, the decision counts only for exactly these arguments (409 otherwise). With `edited_input` an approved
    call runs with those arguments instead: 422 where its tool does not let people change them like this, 409 where the
    call has been decided already. Then nothing is changed.
    """
    instance = open_instance(caller_of(request).user, instance_id, needs=Role.APPROVER)
    shown = None if data.input is None else fingerprint(data.input)
    reply = Reply(
        call_id=call_id,
        is_approved=data.approved,
        reason=data.reason,
        input_hash=shown,
        edited_input=data.edited_input,
        continues=data.continues,
        always=None if data.always is None else RuleLevel(data.always),
        denies_all=data.deny_all,
        answers=data.answers,
    )
    return _answer(request, instance, reply)


@router.post(
    "/instances/{instance_id}/approvals",
    response=AnsweredOut,
    operation_id="decide_calls",
    openapi_extra=declares(409),
)
def calls_decide(request: HttpRequest, instance_id: str, data: DecisionsIn) -> AnsweredOut:
    """Decide all open questions of a conversation at once: all decisions count, or none.

    Each open question must be named exactly once, else 409 (`answers_incomplete`, with the open ones). Each decision is
    checked as one alone is. Nothing is changed by an error, and no call runs before all are decided.
    """
    instance = open_instance(caller_of(request).user, instance_id, needs=Role.APPROVER)
    replies = [
        Reply(
            call_id=each.call_id,
            is_approved=each.approved,
            reason=each.reason,
            input_hash=None if each.input is None else fingerprint(each.input),
            edited_input=each.edited_input,
            continues=data.continues,
            answers=each.answers,
        )
        for each in data.decisions
    ]
    return _answered(decide_all(key_of(instance), replies, Actor(user_id=caller_of(request).user.pk, via="api")))


@router.post("/instances/{instance_id}/calls/{call_id}/result", response=AnsweredOut, operation_id="answer_call")
def call_answer(request: HttpRequest, instance_id: str, call_id: str, data: ResultIn) -> AnsweredOut:
    """Give the result of a call that a client runs: an `output`, or an `error_text`. The first result counts."""
    instance = open_instance(caller_of(request).user, instance_id, needs=Role.WRITER)
    if data.error_text is not None and "output" in data.model_fields_set:
        raise InputInvalid("A result is an `output` or an `error_text`, not both.")
    reply = Reply(call_id=call_id, output=data.output, error_text=data.error_text, continues=data.continues)
    return _answer(request, instance, reply)


@router.get(
    "/instances/{instance_id}/calls/{call_id}/events",
    response=list[ApprovalEventOut],
    operation_id="list_approval_events",
)
def call_events(request: HttpRequest, instance_id: str, call_id: str) -> object:
    """Audit events of a call's approval, oldest first: requested, decided, expired, with author and reason."""
    instance = open_instance(caller_of(request).user, instance_id, needs=Role.READER)
    require_call(instance, call_id)
    return approval_events(instance.pk, call_id)


def _answer(request: HttpRequest, instance: AgentInstance, reply: Reply) -> AnsweredOut:
    if not reply.call_id:
        raise CallNotFound
    require_call(instance, reply.call_id)
    actor = Actor(user_id=caller_of(request).user.pk, via="api")
    return _answered(reply_to_call(key_of(instance), reply, actor))


def _answered(replied: Replied) -> AnsweredOut:
    return AnsweredOut(
        accepted=replied.is_new,
        turn_id=None if replied.turn is None else replied.turn.pk,
        not_continued=translate(replied.refusal) if replied.refusal else None,
        rules=[rule.pk for rule in replied.rules],
        settled=list(replied.settled),
    )


def _pending(view: PendingApproval) -> PendingApprovalOut:
    return PendingApprovalOut(
        call_id=view.call_id,
        instance_id=view.instance_id,
        title=view.title,
        agent=view.agent,
        message_id=view.message_id,
        tool=view.tool,
        tool_title=view.tool_title,
        sentence=view.question.sentence,
        may_edit=_may_edit(view.question),
        input_schema=view.question.input_schema,
        risk=_risk(view.question),
        because=_because(view.question),
        key=view.question.key,
        offers=_offers(view.question) if view.is_own else [],  # only the owner allows for always
        rule=view.question.rule,
        choices=_choices(view.question),
        input=view.input,
        requested_at=view.requested_at,
        expires_at=view.expires_at,
    )


def _may_edit(question: Question) -> bool | list[str]:
    return question.may_edit if isinstance(question.may_edit, bool) else list(question.may_edit)


def _because(question: Question) -> list[SourceOut]:
    return [SourceOut(kind=text.origin.value, source=text.source) for text in question.because]


def _offers(question: Question) -> list[OfferOut]:
    return [OfferOut(**asdict(offer)) for offer in question.offers]


def _choices(question: Question) -> list[ChoiceOut]:
    return [ChoiceOut.model_validate(each) for each in question.choices]


def _risk(question: Question) -> Literal["", "low", "medium", "high"]:
    match question.risk:
        case "low" | "medium" | "high":
            return question.risk
    return ""


def _effect(row: ActionRecord) -> ActionOut:
    return filled(
        ActionOut,
        row,
        id=row.pk,
        instance_id=row.scope,
        status=ActionStatus(row.status).value,
        undo_status=UndoStatus(row.undo_status).value,
    )


def _open_call(row: ToolCallRecord, message_id: str) -> OpenCallOut:
    question = question_of(row.question)
    return OpenCallOut(
        tool_title=title_of(row.tool_name, question.title),
        sentence=question.sentence,
        may_edit=_may_edit(question),
        input_schema=question.input_schema,
        risk=_risk(question),
        because=_because(question),
        key=question.key,
        offers=_offers(question),
        rule=question.rule,
        choices=_choices(question),
        call_id=row.call_id,
        tool_name=row.tool_name,
        input=row.input,
        needs="approval" if row.status == CallStatus.ASKED else "result",
        turn_id=row.turn_id,
        message_id=message_id,
        asked_at=row.created_at,
        expires_at=row.expires_at,
    )
