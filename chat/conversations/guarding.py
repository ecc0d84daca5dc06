"""The injection guard of a conversation, as people see it and decide about it."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from chat.errors import InputInvalid
from chat.instances.notifications import notify_conversation
from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.turns.guarding.handed_down import guard_below, rules_of
from tools_app.calls.services import Actor
from tools_app.core.guard.rules import GuardDecision, InjectionGuard
from tools_app.core.origins import UNTRUSTED
from tools_app.guard.standings import Deciding, decide, view_of
from tools_app.models.guard import GuardEvent

SHOWN_TEXTS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardState:
    """The guard of a conversation now. `texts`: of strangers, the newest first; `count`: how many there are in all.

    `decision`: the last one, empty for none; `rules`: what its class says, and no weaker than the classes above.
    """

    is_guarded: bool
    decision: GuardDecision
    count: int
    texts: list[GuardEvent]
    decided_by: str
    decided_at: datetime | None
    rules: InjectionGuard


def guard_state(instance: AgentInstance) -> GuardState:
    """The guard of the current history of a conversation. Two queries."""
    rules = guard_below(key_of(instance), rules_of(instance.agent))
    counted = [origin for origin in UNTRUSTED if rules.counts(origin)]
    view = view_of(instance.session_id or "", counted, limit=SHOWN_TEXTS)
    return GuardState(
        is_guarded=view.is_guarded,
        decision=view.standing.decision,
        count=view.standing.seen,
        texts=view.texts,
        decided_by=view.decided_by,
        decided_at=view.decided_at,
        rules=rules,
    )


def decide_guard(instance: AgentInstance, decision: GuardDecision, *, seen: int, actor: Actor) -> GuardState:
    """Take a person's decision, and notify the owner's open pages. The last decision counts.

    `seen`: how many texts that person was shown. A turn that runs asks again before each of its calls. Nothing changes
    in a conversation without text of strangers. Errors: `InputInvalid` for a decision that is none.
    """
    if decision is GuardDecision.NONE:
        raise InputInvalid("A decision is one of ask, until_new and conversation.")
    with transaction.atomic():
        deciding = Deciding(decision=decision, seen=seen, actor_id=actor.user_id, via=actor.via)
        if decide(instance.session_id or "", deciding) is not None:
            notify_conversation(instance.owner_id, instance.pk)
    return guard_state(instance)
