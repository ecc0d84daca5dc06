"""Answers from outside a turn: a client's result of a call, a person's decision about one, or an expiry.

All ways in (socket, API, admin, a client's array, expiry) come through here. The call's row decides who was first; the
stored message follows it in the same transaction, and every client is notified. Once the last open call of an answer is
settled and one of the replies asked for it, the conversation goes on by a turn of its own
(`chat/turns/admission/continuation.py`).

A turn that still runs has no stored message: its answers wait in their rows, and its end takes them up. A call that
another call makes, as code does, is no part of a message: its turn is parked meanwhile, and the decision wakes it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Final

from chat.agent.base import InstanceKey
from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.core.wire import frames
from chat.core.wire.client_intent import Known, call_answers
from chat.errors import AnswerDenied, CallChanged, CallDecided, InputInvalid, RoleNeeded
from chat.instances.notifications import notify_message_changed
from chat.instances.rows import find_instance, key_of
from chat.members import policy
from chat.members.selectors import author_of, role_of
from chat.models import AgentInstance, Role, Turn
from chat.turns.admission.intake import ClientArray, Intake
from chat.turns.state.active import active_turns
from fibers.core.states import TERMINAL, FiberStatus
from fibers.services import answer_wait, hold_fiber
from sessions_app.core.messages import call_texts
from sessions_app.core.messages.parts import Approval, Result, apply_approval, apply_result, hand_over
from sessions_app.core.messages.shapes import OURS, Message, Part
from sessions_app.core.messages.tool_states import ToolState
from sessions_app.errors import MessageNotFound
from sessions_app.messages import selectors
from sessions_app.messages.services import update_message
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, fingerprint
from thinkproject.kernel.phrases import Phrase
from tools_app.calls.selectors import calls_of, find_call, find_question, open_calls
from tools_app.calls.services import Actor, Decision, abandon_call, answer_call, decide_call, keep_early_answer
from tools_app.core.choices import ANSWERS, with_answers_of
from tools_app.core.permissions.rules import RuleLevel
from tools_app.core.questions import checked_edit, question_of
from tools_app.core.tool_calls import OPEN, CallStatus, ToolResult
from tools_app.models import ApprovalEventKind, ToolCallRecord

ANSWERABLE: Final = OPEN - {CallStatus.APPROVED}
"""Calls that wait for an answer."""

PASSED_TEXT: Final = "The conversation went on without an answer."
_WENT_WELL: Final = (FiberStatus.RUNNING, FiberStatus.COMPLETED)  # running: stored, and about to say so


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer to one call: a decision where `is_approved` is set, else a result.

    Shape: a result is an `output`, or an `error_text` (empty: the usual words). `input_hash` is the fingerprint of the
    arguments that were shown to the answerer, where it sends them. `edited_input`: the arguments that an approved call
    runs with instead, all of them. `continues`: go on by itself once nothing is open.
    """

    call_id: str
    output: JSONValue = None
    error_text: str | None = None
    is_approved: bool | None = None
    reason: str = ""
    input_hash: str | None = None
    edited_input: JSONObject | None = None
    continues: bool = True
    approval_id: str = ""  # of the question that is answered, where the answerer knows it
    always: RuleLevel | None = None  # of the rule that an approval adds: this conversation's, or the person's
    denies_all: bool = False  # a refusal of all open questions of the conversation
    answers: list[list[str]] | None = None  # to a question with choices, in the order of its questions


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCalls:
    """The outcome.

    Not new: another answer was first, or there is no such call. `ready`: the turn that can be continued.
    """

    is_new: bool
    ready: Turn | None = None
    late_for: Turn | None = None  # the call had been answered; its turn, whose message says how


def answer(instance: AgentInstance, reply: Reply, actor: Actor) -> AnsweredCalls:
    """Take an answer, inside a transaction that holds the instance's row.

    Durability: committed with that transaction; the first answer wins. Errors: `CallChanged` when the answerer was
    shown other arguments. Of a decision that changes arguments: `CallDecided` when it comes too late, `EditInvalid`
    when they may not be changed like this, `InputInvalid` when it does not approve. `RoleNeeded`, `AnswerDenied`: as
    `require_may_answer`.
    """
    row = find_answered(instance, reply)
    if row is None and _keep_early(instance, reply):
        return AnsweredCalls(is_new=True)
    row = row or find_answered(instance, reply)
    if row is None or reply.approval_id not in ("", row.approval_id):
        return AnsweredCalls(is_new=False)
    require_may_answer(instance, row, actor)
    turn = Turn.objects.select_related("fiber").filter(pk=row.turn_id).first()
    if row.wait_key:
        return _answer_inner(row, turn, reply, actor)
    if not _take(row, reply, actor):
        return AnsweredCalls(is_new=False, late_for=turn)
    if turn is None or turn.finished_at is None:
        return AnsweredCalls(is_new=True)  # its end takes this up
    show_answers(instance, turn, [row])
    return AnsweredCalls(is_new=True, ready=turn if is_ready(turn) else None)


BY_PEOPLE: Final = ("socket", "api", "link")
"""Ways in on which an answer is a person's own. Staff answer through the admin with a permission of theirs."""


def require_may_answer(instance: AgentInstance, row: ToolCallRecord, actor: Actor) -> None:
    """Refuse the answer of a person whose role, or the agent's class, does not let that person give it.

    No query for the owner where the class lets all approvers answer. Errors: `RoleNeeded`, `AnswerDenied`.
    """
    if actor.user_id is None or actor.via not in BY_PEOPLE:
        return
    is_question = row.status == CallStatus.ASKED
    policy.require(role_of(actor.user_id, instance), Role.APPROVER if is_question else Role.WRITER)
    rule = _approved_by(instance.agent) if is_question else policy.ANY_APPROVER
    if rule != policy.ANY_APPROVER:
        author = Turn.objects.filter(pk=row.turn_id).values_list("author", flat=True).first() or ""
        policy.require_answerer(rule, is_requester=author == author_of(actor.user_id, instance.owner_id))


def may_answer(instance: AgentInstance, row: ToolCallRecord, actor: Actor) -> bool:
    """Whether `require_may_answer` refuses nothing."""
    try:
        require_may_answer(instance, row, actor)
    except (RoleNeeded, AnswerDenied):
        return False
    return True


def _approved_by(agent: str) -> str:
    cls = get_agent_class(agent) if is_served(agent) else None
    return cls.approved_by if cls is not None and issubclass(cls, Think) else policy.ANY_APPROVER


def find_answered(instance: AgentInstance, reply: Reply) -> ToolCallRecord | None:
    """The call that is answered: the newest of its id, unless the question is named. Models use ids twice."""
    named = find_question(instance.pk, reply.approval_id)
    return named if named is not None and named.call_id == reply.call_id else find_call(instance.pk, reply.call_id)


def _answer_inner(row: ToolCallRecord, turn: Turn | None, reply: Reply, actor: Actor) -> AnsweredCalls:
    """Decide about a call that another call makes. What has ended meanwhile is not decided any more."""
    if turn is None or not hold_fiber(turn.fiber_id) or not _take(row, reply, actor):
        return AnsweredCalls(is_new=False)  # no message shows it
    wake_turn_of(row)
    return AnsweredCalls(is_new=True)


def hold_turn_of(row: ToolCallRecord | None) -> None:
    """Lock the turn that waits in a call of a call; runners lock it before the instance's row, so do this first."""
    if row is not None and row.wait_key:
        for fiber_id in Turn.objects.filter(pk=row.turn_id).values_list("fiber_id", flat=True):
            hold_fiber(fiber_id)


def wake_turn_of(row: ToolCallRecord) -> None:
    """Let the turn go on that waits in a call of a call; in the transaction that settles the question."""
    for fiber_id in Turn.objects.filter(pk=row.turn_id).values_list("fiber_id", flat=True):
        answer_wait(fiber_id, row.wait_key, {"call": row.call_id})


def _keep_early(instance: AgentInstance, reply: Reply) -> bool:
    """Keep a result for a call that the running turn is still saying: clients see a call before its step has ended."""
    if reply.is_approved is not None:
        return False
    running = active_turns(instance.pk).filter(started_at__isnull=False, finished_at=None).first()
    if running is None:
        return False
    has_failed = reply.error_text is not None
    result = ToolResult(
        output=reply.error_text or call_texts.DENIED if has_failed else reply.output, is_error=has_failed
    )
    return keep_early_answer(
        reply.call_id,
        result,
        turn_id=running.pk,
        scope=instance.pk,
        owner_id=instance.owner_id,
        continues=reply.continues,
    )


def _take(row: ToolCallRecord, reply: Reply, actor: Actor) -> bool:
    if reply.input_hash not in (None, fingerprint(row.input)):
        raise CallChanged(Phrase("The arguments of the call {id!r} are not those that were answered.", id=row.call_id))
    waits = row.status == CallStatus.WAITING
    edited = _edited(row, reply)
    if reply.is_approved is None and reply.error_text is None:
        # What a tool of ours gave is never believed from outside, approved or not.
        return waits and answer_call(row, ToolResult(output=reply.output), continues=reply.continues)
    if waits and not reply.is_approved:
        text = reply.error_text or reply.reason or call_texts.DENIED
        return answer_call(row, ToolResult(output=text, is_error=True), continues=reply.continues)
    decision = Decision(
        approved=bool(reply.is_approved),
        reason=reply.reason or reply.error_text or "",
        edited_input=edited,
        continues=reply.continues,
    )
    is_first = decide_call(row, decision, actor)
    if not is_first and edited is not None:
        raise CallDecided
    return is_first


def _edited(row: ToolCallRecord, reply: Reply) -> JSONObject | None:
    """The changed arguments of a decision, if they differ. Errors: as `answer`."""
    question = question_of(row.question)
    if question.choices and reply.is_approved and row.status == CallStatus.ASKED:
        answers = reply.answers if reply.answers is not None else (reply.edited_input or {}).get(ANSWERS)
        return with_answers_of(question, row.input, answers)
    if reply.answers is not None and reply.is_approved:
        raise InputInvalid("This question has no choices.")
    if reply.edited_input is None:
        return None
    if not reply.is_approved:
        raise InputInvalid("Arguments can be changed by an approval only.")
    if row.status != CallStatus.ASKED:
        raise CallDecided
    return checked_edit(question, row.input, reply.edited_input)


def show_answers(instance: AgentInstance, turn: Turn, rows: Iterable[ToolCallRecord]) -> None:
    """Write the rows' answers into the turn's stored message and notify every client."""
    try:
        changed = update_message(turn.session_id, turn.assistant_id, with_answers(rows))
    except MessageNotFound:
        return  # deleted meanwhile
    if changed is not None:
        notify_message_changed(key_of(instance), turn.session_id, turn.assistant_id)


def with_answers(rows: Iterable[ToolCallRecord]) -> Callable[[Message], Message]:
    """Give the function that writes these rows' answers into a message; open rows change nothing."""
    ids = [row.pk for row in rows]
    fresh = list(ToolCallRecord.objects.filter(pk__in=ids, wait_key="").order_by("pk"))
    return lambda message: reduce(_apply, fresh, message)


def _apply(message: Message, row: ToolCallRecord) -> Message:
    if row.edited_input is not None:  # no result comes before the arguments that led to it
        message = apply_approval(message, row.call_id, Approval(approved=True, edited_input=row.edited_input))
    match CallStatus(row.status):
        case CallStatus.SUCCEEDED:
            return apply_result(message, row.call_id, Result(output=row.output, metadata=_metadata(row)))
        case CallStatus.FAILED:
            text = str(row.output or "")
            return apply_result(message, row.call_id, Result(is_error=True, error_text=text, metadata=_metadata(row)))
        case CallStatus.APPROVED:
            return apply_approval(message, row.call_id, Approval(approved=True))
        case CallStatus.DENIED:
            return apply_approval(message, row.call_id, Approval(approved=False, reason=str(row.output or "")))
        case CallStatus.WAITING if row.approval_id:  # a person has approved that a client runs it
            return hand_over(message, row.call_id)
        case CallStatus.WAITING | CallStatus.ASKED | CallStatus.RUNNING | CallStatus.EARLY:
            return message


def _metadata(row: ToolCallRecord) -> JSONObject | None:
    return {OURS: row.details} if row.details else None


def is_ready(turn: Turn) -> bool:
    """Whether a finished turn can be continued: no open calls, auto-continue requested, no continuation admitted yet.

    A turn that was stopped or failed is not continued by itself, nor one that the shown path has left. A path that only
    goes on has not left one with a lasting question. Needs its fiber.
    """
    rows = list(calls_of(turn.pk))
    asked = any(row.continues for row in rows)
    is_open = any(row.status in ANSWERABLE for row in rows)
    fiber = turn.fiber
    went_well = fiber.status in _WENT_WELL and fiber.cancel_requested_at is None and not turn.error_code
    if not asked or is_open or not went_well or Turn.objects.filter(parent=turn).exists():
        return False
    if selectors.leaf_id(turn.session_id) == turn.assistant_id:
        return True
    return any(row.lasting for row in rows) and selectors.is_on_path(turn.session_id, turn.assistant_id)


def has_lasting(turn: Turn) -> bool:
    """Whether a turn has asked something that stays open when the conversation goes on."""
    return calls_of(turn.pk).filter(lasting=True).exists()


def supersede_open_calls(
    instance: AgentInstance,
    actor: Actor,
    *,
    session_id: str | None,
    statuses: Collection[CallStatus] = ANSWERABLE,
    with_lasting: bool = False,
) -> None:
    """Settle open calls in finished turns of a session that continues without their answers.

    Approvals are denied, calls of clients fail, approved calls that never ran fail. Lasting questions stay open, unless
    `with_lasting`. Inside a transaction that holds the instance's row.
    """
    rows = open_calls(instance.pk).filter(status__in=statuses)
    for turn, left in _by_ended_turn(rows if with_lasting else rows.filter(lasting=False), session_id):
        _supersede(instance, turn, left, actor)


def supersede_left_questions(instance: AgentInstance, actor: Actor, *, session_id: str, leaf_id: str | None) -> None:
    """Settle lasting questions that a turn which has just begun leaves behind: it does not hang below them.

    So are approved calls that nothing is going to run, where their continuation was refused or stopped. As above.
    """
    for turn, rows in _by_ended_turn(open_calls(instance.pk).filter(lasting=True), session_id):
        is_left = leaf_id is None or not selectors.is_on_path(session_id, turn.assistant_id, leaf_id)
        is_decided = all(row.status == CallStatus.APPROVED for row in rows)
        if is_left or (is_decided and not _is_continued(turn, leaf_id)):
            _supersede(instance, turn, rows, actor)


def _is_continued(turn: Turn, leaf_id: str | None) -> bool:
    """Whether a turn runs or waits that goes on from this one, or this one's answer is what is gone on from now."""
    if turn.assistant_id == leaf_id:
        return True
    return Turn.objects.filter(parent=turn).exclude(fiber__status__in=TERMINAL).exists()


def _by_ended_turn(
    rows: Iterable[ToolCallRecord], session_id: str | None
) -> Iterator[tuple[Turn, list[ToolCallRecord]]]:
    """Calls by their turns, those alone that have ended and are of this session. No query without calls."""
    by_turn: dict[str, list[ToolCallRecord]] = {}
    for row in rows:
        by_turn.setdefault(row.turn_id, []).append(row)
    ended = Turn.objects.filter(pk__in=by_turn, session_id=session_id, finished_at__isnull=False)
    return ((turn, by_turn[turn.pk]) for turn in (ended if by_turn else ()))


def _supersede(instance: AgentInstance, turn: Turn, rows: list[ToolCallRecord], actor: Actor) -> None:
    for row in rows:
        abandon_call(row, _passed_text(row), ApprovalEventKind.SUPERSEDED, actor)
    show_answers(instance, turn, rows)


def settle_open_calls(instance: AgentInstance, intake: Intake, actor: Actor) -> None:
    """Settle open calls before admission: by answers in the client's array, else as superseded.

    One query where nothing is open. The array's answers admit no turn: the request itself goes on.
    """
    rows = list(open_calls(instance.pk).filter(status__in=ANSWERABLE))
    if rows and isinstance(intake, ClientArray):
        for found in call_answers(intake.messages, _known(row for row in rows if _is_answered_by(row, intake))):
            reply = Reply(
                call_id=found.call_id,
                output=found.output,
                error_text=found.error_text,
                is_approved=found.is_approved,
                continues=False,
            )
            row = find_answered(instance, reply)
            if row is None or may_answer(instance, row, actor):  # what a person may not answer is not answered
                answer(instance, reply, actor)
    if rows:
        supersede_open_calls(instance, actor, session_id=instance.session_id)


def _is_answered_by(row: ToolCallRecord, intake: ClientArray) -> bool:
    """Whether a client's array may answer a call; a lasting question only where the array ends with its message."""
    if row.wait_key:
        return False
    last = intake.messages[-1] if intake.messages else None
    asks = last is not None and any(part.get("toolCallId") == row.call_id for part in last["parts"])
    return asks or not row.lasting


def _known(rows: Iterable[ToolCallRecord]) -> dict[str, Known]:
    """The open calls in the form compared with the array: name, arguments, and the kind of answer."""
    parts: list[Part] = [
        {
            "type": f"tool-{row.tool_name}",
            "toolCallId": row.call_id,
            "input": row.input,
            "state": ToolState.APPROVAL_REQUESTED if row.status == CallStatus.ASKED else ToolState.INPUT_AVAILABLE,
        }
        for row in rows
    ]
    return {"": Known(message={"id": "", "role": "assistant", "parts": parts})}


def _passed_text(row: ToolCallRecord) -> str:
    match row.status:
        case CallStatus.APPROVED:
            return call_texts.NOT_RUN
        case CallStatus.ASKED:
            return PASSED_TEXT
    return call_texts.INTERRUPTED


def has_pending_interaction(key: InstanceKey) -> bool:
    """Whether a client or a person still owes an answer in the current session. Two queries, or three."""
    instance = find_instance(key)
    if instance is None or instance.session_id is None:
        return False
    # From the few open calls to their turns: a session may have had very many.
    owing = set(open_calls(instance.pk).filter(status__in=ANSWERABLE).values_list("turn_id", flat=True))
    if not owing:
        return False
    elsewhere = Turn.objects.filter(pk__in=owing).exclude(session_id=instance.session_id)
    return owing > set(elsewhere.values_list("pk", flat=True))


def pending_calls(instance: AgentInstance) -> list[ToolCallRecord]:
    """Calls of a conversation that wait for a client or a person, oldest first."""
    return list(open_calls(instance.pk).filter(status__in=ANSWERABLE))


def reply_of(frame: frames.ToolResult | frames.ToolApproval) -> Reply:
    """The answer that a frame carries. A failure without words gets the usual ones."""
    if isinstance(frame, frames.ToolApproval):
        return Reply(
            call_id=frame.tool_call_id,
            is_approved=frame.approved,
            reason=frame.reason,
            edited_input=frame.edited_input,
            continues=frame.auto_continue,
            always=None if frame.always is None else RuleLevel(frame.always),
            denies_all=frame.deny_all,
            answers=frame.answers,
        )
    has_failed = frame.state == "output-error"
    return Reply(
        call_id=frame.tool_call_id,
        output=None if has_failed else frame.output,
        error_text=(frame.error_text or "") if has_failed else None,
        continues=frame.auto_continue,
    )


def tools_of(frame: frames.ChatRequest | frames.ToolResult | frames.ToolApproval) -> list[JSONObject] | None:
    """The client's tools that a frame brings; `None` when it does not speak of them."""
    tools = None if isinstance(frame, frames.ToolApproval) else frame.client_tools
    return None if tools is None else [tool.model_dump() for tool in tools]
