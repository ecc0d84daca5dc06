"""Going on after answers: the turn that continues a conversation once nothing in its last answer is open.

It is admitted in the transaction of the answer that was missing, so its sender may disconnect at once. Exactly one
results from a batch: the answer that settles the last call admits it, in whatever order they come.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import transaction

from chat.agent.base import InstanceKey
from chat.errors import AnswersIncomplete, CallDecided, CallNotFound, QuotaExceeded
from chat.instances.notifications import notify_conversation
from chat.instances.rows import find_instance, hold_instance
from chat.instances.runs import note_turn_end
from chat.models import AgentInstance, Turn, TurnOptions, TurnTrigger
from chat.turns.admission.admit import TurnRequest, accept_turn
from chat.turns.admission.authors import GONE, may_go_on
from chat.turns.admission.intake import Continue, Placement
from chat.turns.admission.rule_answers import (
    add_offered,
    answer_covered,
    answer_others,
    hold_waiting,
    reaches_others,
)
from chat.turns.admission.tool_answers import (
    AnsweredCalls,
    Reply,
    answer,
    has_lasting,
    hold_turn_of,
    is_ready,
    pending_calls,
    show_answers,
    wake_turn_of,
)
from chat.turns.tools.client_tools import remember_client_tools
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.phrases import Phrase
from tools_app.calls.selectors import expired_call, find_call, scopes_with_questions
from tools_app.calls.services import Actor, abandon_call
from tools_app.core.permissions.rules import RuleLevel
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ApprovalEventKind, PermissionRule

logger = logging.getLogger(__name__)

EXPIRED_TEXT = "Nobody answered in time."


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """The outcome of an answer. `turn` continues it; `refusal`: why an expected continuation was refused.

    `late_for`: the call had been answered already; the turn whose message says how. `rules`: that the decision added.
    `settled`: the ids of other calls of the conversation that it has settled.
    """

    is_new: bool
    late_for: Turn | None = None
    turn: Turn | None = None
    refusal: Phrase | None = None
    rules: tuple[PermissionRule, ...] = ()
    settled: tuple[str, ...] = ()


def reply_to_call(
    key: InstanceKey,
    reply: Reply,
    actor: Actor,
    *,
    origin: str = "",
    client_tools: Sequence[JSONObject] | None = None,
) -> Replied:
    """Take an answer to a call and go on when it was the last one.

    Durability: when this returns the answer and the turn that follows are committed. An answer that comes late, twice
    or to nothing changes nothing. `client_tools` replaces the tools that clients run. Errors: `CallChanged`,
    `InputInvalid` for tools that are too many, and those of a decision that changes arguments (`answer`) or allows for
    always (`rule_answers`); nothing is changed.
    """
    with transaction.atomic():
        instance = find_instance(key)
        if instance is None:
            return Replied(is_new=False)
        if ":" in reply.call_id:  # only calls of calls are sure to have it
            hold_turn_of(find_call(instance.pk, reply.call_id))
        elif reaches_others(reply):
            hold_waiting(instance)
        hold_instance(instance)
        remember_client_tools(instance, client_tools)
        rules = add_offered(instance, reply, actor)
        answered = answer(instance, reply, actor)
        if not answered.is_new:
            return Replied(is_new=False, late_for=answered.late_for)
        others = list(answer_others(instance, reply, actor))
        notify_conversation(instance.owner_id, instance.pk)
        replied = _continued(instance, [answered, *(each for _, each in others)], origin)
        replied = replace(replied, rules=tuple(rules), settled=tuple(call_id for call_id, _ in others))
    if rules and reply.always is RuleLevel.OWNER:
        _settle_elsewhere(instance, reply, actor)
    return replied


def decide_all(key: InstanceKey, replies: Sequence[Reply], actor: Actor) -> Replied:
    """Take the decisions about all questions that wait in a conversation, or none of them.

    Durability: one transaction. Errors: `AnswersIncomplete` when they do not name each open question exactly once, and
    those of `reply_to_call`; then nothing is changed, and nothing runs.
    """
    with transaction.atomic():
        instance = find_instance(key)
        if instance is None:
            raise CallNotFound
        hold_waiting(instance)
        hold_instance(instance)
        open_ids = [row.call_id for row in pending_calls(instance) if row.status == CallStatus.ASKED]
        if sorted(open_ids) != sorted(reply.call_id for reply in replies):
            raise AnswersIncomplete(open=sorted(open_ids))
        answered = [answer(instance, reply, actor) for reply in replies]
        if not all(each.is_new for each in answered):
            raise CallDecided
        notify_conversation(instance.owner_id, instance.pk)
        return _continued(instance, answered, "")


def _continued(instance: AgentInstance, answered: Sequence[AnsweredCalls], origin: str) -> Replied:
    """Go on from each turn that is ready; the first one is reported."""
    ready = {each.ready.pk: each.ready for each in answered if each.ready is not None}
    gone_on = [_go_on(instance, turn, origin) for turn in ready.values()]
    turn, refusal = gone_on[0] if gone_on else (None, None)
    return Replied(is_new=True, turn=turn, refusal=refusal)


def _settle_elsewhere(instance: AgentInstance, reply: Reply, actor: Actor) -> None:
    """Settle what a person's new rules cover in the other conversations, each in a transaction of its own.

    A conversation that a crash leaves out asks as it did.
    """
    for scope in scopes_with_questions(instance.owner_id):
        other = AgentInstance.objects.filter(pk=scope, owner_id=instance.owner_id).first()
        if other is None or scope == instance.pk:
            continue
        with transaction.atomic():
            hold_waiting(other)
            hold_instance(other)
            settled = [each for _, each in answer_covered(other, reply, actor)]
            if settled:
                notify_conversation(other.owner_id, other.pk)
                _continued(other, settled, "")


def require_call(instance: AgentInstance, call_id: str) -> None:
    """Errors: `CallNotFound` when no client or person was ever asked about such a call here."""
    if find_call(instance.pk, call_id) is None:
        raise CallNotFound


def continue_when_ready(turn_id: str) -> None:
    """Go on from a turn that ends in this transaction, if everything it left open was answered while it ran."""
    turn = Turn.objects.select_related("fiber", "instance").get(pk=turn_id)
    if is_ready(turn):
        _go_on(turn.instance, turn, "")


@transaction.atomic
def expire_question(row_id: int, instance_id: str) -> bool:
    """Deny a question whose time is over, visibly; `False` if it is not, or was answered. Safe to call twice.

    By itself that continues nothing; it does when another call of the same answer had asked for it.
    """
    instance = AgentInstance.objects.filter(pk=instance_id).first()
    hold_turn_of(expired_call(row_id))
    if instance is not None:
        hold_instance(instance)
    row = expired_call(row_id)
    server = Actor(user_id=None, via="server")
    if row is None or not abandon_call(row, EXPIRED_TEXT, ApprovalEventKind.EXPIRED, server):
        return False
    if row.wait_key:
        wake_turn_of(row)
        notify_conversation(row.owner_id, row.scope)
        return True
    turn = Turn.objects.select_related("fiber").filter(pk=row.turn_id).first()
    if instance is not None and turn is not None and turn.finished_at is not None:
        show_answers(instance, turn, [row])
        notify_conversation(instance.owner_id, instance.pk)
        if is_ready(turn):
            _go_on(instance, turn, "")
        elif instance.parent_id is not None:  # nothing goes on by itself; who waits for this sub-agent learns it
            note_turn_end(instance.pk, turn.pk, "interrupted", error=EXPIRED_TEXT)
    return True


def _go_on(instance: AgentInstance, parent: Turn, origin: str) -> tuple[Turn | None, Phrase | None]:
    """Admit the continuation. The answer stays when it is refused."""
    if not may_go_on(instance, parent.author):
        return None, GONE
    placement = Placement(trigger=TurnTrigger.CONTINUE, base_id=parent.assistant_id, base_is_explicit=True)
    if has_lasting(parent):  # whatever is said until it begins, it goes on from there
        placement = Placement(trigger=TurnTrigger.CONTINUE)
    options: TurnOptions = {"goes_on_from": [*parent.options.get("goes_on_from", ()), parent.pk]}
    if "direct_call" in parent.options:  # the call has run then: no model is asked to go on
        options["direct_call"] = parent.options["direct_call"]
    if "opening" in parent.options:
        options["opening"] = parent.options["opening"]
    if "inbox" in parent.options:
        options["inbox"] = False
    if "denied" in parent.options:
        options["denied"] = parent.options["denied"]
    request = TurnRequest(intake=Continue(), body=instance.last_body, options=options, origin=origin)
    try:
        with transaction.atomic():
            return accept_turn(instance, request, placement, parent=parent), None
    except QuotaExceeded as error:
        logger.warning("not continued", extra={"action": "turn_not_continued", "reason": error.message})
        if instance.parent_id is not None:
            note_turn_end(instance.pk, parent.pk, "error", error=error.message, code=error.code)
        return None, error.phrase
