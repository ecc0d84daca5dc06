"""Decisions that reach further than one call: an allowance for always, a refusal of all that is open.

A decision that allows for always adds the rules that its question offered. They settle the other open questions that
they cover, and no others: each is judged again by all rules of its conversation. Inside a transaction that holds the
instance's row, and before it the fibers of turns that wait for such answers (`hold_waiting`).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from django.utils import timezone

from chat.errors import CallDecided, InputInvalid
from chat.instances.rows import key_of
from chat.members import policy
from chat.members.selectors import role_of
from chat.models import AgentInstance, Role, Turn
from chat.turns.admission.tool_answers import (
    BY_PEOPLE,
    AnsweredCalls,
    Reply,
    answer,
    find_answered,
    hold_turn_of,
    may_answer,
)
from chat.turns.guarding.turn_rules import rules_of_instance
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase
from tools_app.calls.selectors import open_calls
from tools_app.calls.services import Actor
from tools_app.core.permissions.rules import Permission, RuleAction, RuleLevel
from tools_app.core.questions import question_of
from tools_app.core.tool_calls import CallStatus
from tools_app.models import PermissionRule, ToolCallRecord
from tools_app.permissions.rows import RulePlace, add_rules

LEVELS: Final = (RuleLevel.CONVERSATION, RuleLevel.OWNER)


def reaches_others(reply: Reply) -> bool:
    """Whether a decision may settle further questions."""
    return reply.always is not None or reply.denies_all


def hold_waiting(instance: AgentInstance) -> None:
    """Lock the turn that waits in calls of calls, if one does; before the instance's row, as runners do."""
    for row in open_calls(instance.pk).filter(status=CallStatus.ASKED).exclude(wait_key="")[:1]:
        hold_turn_of(row)


def add_offered(instance: AgentInstance, reply: Reply, actor: Actor) -> list[PermissionRule]:
    """Store the allowances that the question of a call offered. Nothing unless the decision is for always.

    Errors: `InputInvalid` where none was offered, or the call is refused; `CallDecided` where it comes too late;
    `RulesFull`.
    """
    if reply.always is None:
        return []
    row = find_answered(instance, reply)
    offers = () if row is None else question_of(row.question).offers
    if not reply.is_approved or reply.edited_input is not None or reply.always not in LEVELS or not offers:
        raise InputInvalid("This call cannot be allowed for always.")
    if actor.user_id is not None and actor.via in BY_PEOPLE:  # a rule decides about calls that others will ask for
        policy.require(role_of(actor.user_id, instance), Role.OWNER)
    if row is None or row.status != CallStatus.ASKED:
        raise CallDecided
    if instance.parent_id is not None and reply.always is RuleLevel.OWNER:
        raise InputInvalid("Allow it in this conversation: what is allowed in all others says nothing about this one.")
    if instance.owner_id is not None:
        lock_owner(instance.owner_id)
    rules = [Permission(action=RuleAction.ALLOW, key=offer.key, pattern=offer.pattern) for offer in offers]
    return add_rules(place_of(instance, reply.always), rules, author_id=actor.user_id, via=actor.via)


def place_of(instance: AgentInstance, level: RuleLevel) -> RulePlace:
    """The place of a person's rules: this conversation's, or those of all conversations."""
    scope = instance.pk if level is RuleLevel.CONVERSATION else ""
    return RulePlace(level=level, owner_id=instance.owner_id, scope=scope)


def answer_others(instance: AgentInstance, reply: Reply, actor: Actor) -> Iterator[tuple[str, AnsweredCalls]]:
    """Settle the other open questions of the conversation that a decision reaches; gives their call ids."""
    if reply.denies_all and not reply.is_approved:
        for row in _asked(instance):
            if may_answer(instance, row, actor):
                yield row.call_id, answer(instance, replace(_about(row, reply), is_approved=False), actor)
    elif reply.always is not None and reply.is_approved:
        yield from answer_covered(instance, reply, actor)


def answer_covered(instance: AgentInstance, reply: Reply, actor: Actor) -> Iterator[tuple[str, AnsweredCalls]]:
    """Approve the open questions of a conversation whose calls would not be asked about any more."""
    rows = [row for row in _asked(instance) if _may_be_covered(row)]
    authors = (
        dict(Turn.objects.filter(pk__in={row.turn_id for row in rows}).values_list("pk", "author")) if rows else {}
    )
    rules = {author: rules_of_instance(instance, key_of(instance), author) for author in set(authors.values())}
    for row in rows:
        facts = question_of(row.question).facts
        known = rules.get(authors.get(row.turn_id, ""))
        verdict = None if known is None or facts is None else known.judge(facts, timezone.now())
        if verdict is not None and verdict.action is RuleAction.ALLOW:
            reason = str(Phrase("Allowed by the rule {rule!r}.", rule=verdict.rule.name))
            yield row.call_id, answer(instance, replace(_about(row, reply), is_approved=True, reason=reason), actor)


def _asked(instance: AgentInstance) -> list[ToolCallRecord]:
    return list(open_calls(instance.pk).filter(status=CallStatus.ASKED))


def _may_be_covered(row: ToolCallRecord) -> bool:
    question = question_of(row.question)
    return question.facts is not None and not question.because


def _about(row: ToolCallRecord, reply: Reply) -> Reply:
    return Reply(call_id=row.call_id, approval_id=row.approval_id, reason=reply.reason, continues=reply.continues)
