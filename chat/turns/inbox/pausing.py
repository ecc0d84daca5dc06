"""A pause of an agent: a fiber that waits at the head of the instance's lane, so that no turn behind it begins.

A turn that runs goes on to its end. What is sent meanwhile is accepted and waits; nothing holds a worker.
"""

from typing import Final

from django.db import transaction

from chat.core.durable_names import AGENT_PAUSE_FIBER
from chat.instances.rows import hold_instance
from chat.models import AgentInstance
from chat.turns.state.active import lane_of
from fibers.core.states import FiberStatus
from fibers.models import Fiber
from fibers.queue.enqueue import LANE_GAP
from fibers.services import cancel_fiber, start_fiber
from fibers.waits import Wait

PAUSE: Final = Wait(key="continue", kind="pause")
"""The wait of the fiber."""


@transaction.atomic
def pause(instance: AgentInstance) -> bool:
    """Let no further turn of an instance begin; false where it is paused already. Committed when this returns."""
    hold_instance(instance)
    if is_paused(instance):
        return False
    live = list(Fiber.objects.live_in(lane_of(instance.pk)).values_list("lane_position", "status"))
    begun = [position for position, status in live if status != FiberStatus.PENDING]
    behind = begun[-1] if begun else live[0][0] - LANE_GAP if live else None
    start_fiber(
        AGENT_PAUSE_FIBER,
        {"instance_id": instance.pk},
        lane=lane_of(instance.pk),
        scope=instance.pk,
        owner_id=instance.owner_id,
        behind=behind,
    )
    return True


@transaction.atomic
def go_on(instance: AgentInstance) -> bool:
    """End the pause of an instance: what waits is answered in its order. False where it is not paused."""
    ended = [cancel_fiber(fiber.pk, reason="continued") for fiber in _pauses(instance)]
    return any(ended)


def is_paused(instance: AgentInstance) -> bool:
    """Whether no turn of an instance begins. One query."""
    return bool(_pauses(instance))


def _pauses(instance: AgentInstance) -> list[Fiber]:
    return list(Fiber.objects.live_in(lane_of(instance.pk)).filter(name=AGENT_PAUSE_FIBER))
