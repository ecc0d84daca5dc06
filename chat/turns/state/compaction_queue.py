"""Queue a compaction: a fiber in the instance's lane, behind the turns already waiting."""

from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

from django.db import transaction
from django.db.models import QuerySet

from chat.agent.registry import get_agent_class
from chat.core.durable_names import COMPACT_FIBER
from chat.instances.rows import hold_instance
from chat.models import AgentInstance
from chat.turns import policies
from chat.turns.state.active import lane_of
from fibers.core.states import FiberStatus
from fibers.models import Fiber
from fibers.services import start_fiber
from sessions_app.models import CompactionTrigger
from thinkproject.kernel.jsonvalue import JSONValue

MAX_INSTRUCTIONS: Final = 2000

Compacting: TypeAlias = Literal["", "waiting", "running"]


@transaction.atomic
def request_compaction(instance: AgentInstance, *, instructions: str = "", user_id: Any = None) -> str:
    """Have the current session compacted, behind the turns that are accepted already. Returns the fiber's id.

    Durability: committed when this returns. One that waits already is enough for all who ask.
    Errors: `AgentNotFound` for an agent that is not served any more; `QuotaExceeded`.
    """
    get_agent_class(instance.agent)
    hold_instance(instance)
    asked_already = _active_turns_of(instance.pk).filter(status=FiberStatus.PENDING).values_list("pk", "payload")
    for fiber_id, payload in asked_already:
        if not isinstance(payload, dict) or not _is_of(instance.session_id, payload):
            continue
        if payload["trigger"] == CompactionTrigger.MANUAL:
            return str(fiber_id)
    policies.check_admission(instance)
    asked = {"instructions": instructions[:MAX_INSTRUCTIONS], "user_id": user_id}
    return start_compaction(
        instance.pk, instance.session_id or "", CompactionTrigger.MANUAL, instance.owner_id, **asked
    )


def start_compaction(instance_id: str, session_id: str, trigger: CompactionTrigger, owner_id: Any, **asked: Any) -> str:
    """Start the fiber, in the caller's transaction. Returns its id."""
    counted = policies.COUNTED if trigger == CompactionTrigger.MANUAL else {}
    fiber = start_fiber(
        COMPACT_FIBER,
        {"instance_id": instance_id, "session_id": session_id, "trigger": trigger.value, **asked},
        lane=lane_of(instance_id),
        owner_id=owner_id,
        metadata={"instance_id": instance_id, **counted},
    )
    return str(fiber.pk)


def active_compactions(instance_id: str, session_id: str | None = None) -> list[str]:
    """Ids of the fibers that wait for or do a compaction, of one session or of all. One query."""
    found = _active_turns_of(instance_id).values_list("pk", "payload")
    return [str(pk) for pk, payload in found if session_id is None or _is_of(session_id, payload)]


def compaction_state(active: Iterable[tuple[str, str, JSONValue]], session_id: str | None) -> Compacting:
    """The state of a session's compaction, from an instance's fibers (name, status, payload); empty without one."""
    statuses = {status for name, status, payload in active if name == COMPACT_FIBER and _is_of(session_id, payload)}
    if not statuses:
        return ""
    return "running" if FiberStatus.RUNNING in statuses else "waiting"


def _is_of(session_id: str | None, payload: JSONValue) -> bool:
    return isinstance(payload, dict) and payload["session_id"] == (session_id or "")


def _active_turns_of(instance_id: str) -> QuerySet[Fiber]:
    return Fiber.objects.live_in(lane_of(instance_id)).filter(name=COMPACT_FIBER)
