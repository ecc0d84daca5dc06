"""API operations on the injection guard of a conversation."""

from django.http import HttpRequest
from ninja import Router

from chat.access.auth import open_instance
from chat.conversations.guarding import GuardState, decide_guard, guard_state
from chat.http.api.authentication import caller_of
from chat.http.api.schemas.guard import GuardIn, GuardOut, GuardTextOut, RelaxedOut
from chat.models import Role
from tools_app.calls.services import Actor
from tools_app.core.guard.rules import ON, GuardDecision

router = Router(tags=["guard"])


@router.get("/instances/{instance_id}/guard", response=GuardOut, operation_id="get_guard")
def guard_detail(request: HttpRequest, instance_id: str) -> GuardOut:
    """Whether text of strangers is in the conversation, which, and what was decided about it."""
    return _encode(guard_state(open_instance(caller_of(request).user, instance_id, needs=Role.READER)))


@router.post("/instances/{instance_id}/guard", response=GuardOut, operation_id="decide_guard")
def guard_decide(request: HttpRequest, instance_id: str, data: GuardIn) -> GuardOut:
    """Decide whether calls go on asking. The last decision counts, also for a turn that runs."""
    caller = caller_of(request)
    instance = open_instance(caller.user, instance_id)
    actor = Actor(user_id=caller.user.pk, via="api")
    return _encode(decide_guard(instance, GuardDecision(data.decision), seen=data.seen, actor=actor))


def _encode(state: GuardState) -> GuardOut:
    rules = state.rules
    relaxed = RelaxedOut(
        reason=rules.reason,
        trusts=sorted(origin.value for origin in rules.trusts),
        allows=list(rules.allows),
        is_off=not rules.is_on,
    )
    return GuardOut(
        is_guarded=state.is_guarded,
        decision=state.decision.value,
        decided_by=state.decided_by,
        decided_at=state.decided_at,
        count=state.count,
        texts=[
            GuardTextOut(
                number=text.number,
                origin=text.origin,  # type: ignore[arg-type]  # one that is counted
                source=text.source,
                message_id=text.message_id,
                call_id=text.call_id,
                seen_at=text.created_at,
            )
            for text in state.texts
        ],
        relaxed=None if rules == ON else relaxed,
    )
