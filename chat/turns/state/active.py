"""The turns of an instance that have not ended, found through the lane of their fibers, whatever the history."""

from typing import Final

from django.db.models import QuerySet

from chat.core.durable_names import TURN_FIBER
from chat.models import AgentInstance, Turn
from fibers.core.states import TERMINAL, FiberStatus
from fibers.models import Fiber
from fibers.selectors import is_silent
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.statements import Statement

_RUNNING: Final = Statement(
    """
    SELECT t.id FROM think_chat_turn t JOIN think_fibers_fiber f ON f.id = t.fiber_id
    WHERE f.lane = %s AND f.finished_at IS NULL AND f.status NOT IN (:terminal:)
        AND t.started_at IS NOT NULL AND t.finished_at IS NULL AND t.session_id = %s AND t.generation = %s
    ORDER BY t.position LIMIT 1
    """,
    terminal=", ".join(f"'{status.value}'" for status in sorted(TERMINAL)),
)


def lane_of(instance_id: str) -> str:
    """Name of the lane in which an instance's turns run, one at a time."""
    return f"instance:{instance_id}"


def active_fibers(instance_id: str) -> list[tuple[str, str, JSONValue]]:
    """Names, statuses and payloads of active fibers in an instance's lane, compactions included. One query."""
    return list(Fiber.objects.live_in(lane_of(instance_id)).values_list("name", "status", "payload"))


def active_turns(instance_id: str) -> QuerySet[Turn]:
    """Active turns in order, with their fibers. One query, whose cost follows the number found.

    `is_silent`: whether the turn's worker has missed heartbeats.
    """
    fibers = Fiber.objects.live_in(lane_of(instance_id)).order_by()
    turns = Turn.objects.filter(fiber__in=fibers).select_related("fiber").order_by("fiber__lane_position")
    return turns.annotate(is_silent=is_silent("fiber__"))


def has_queued_turns(instance_id: str) -> bool:
    """Whether turns wait for the one that runs. One query, by an index."""
    return Fiber.objects.live_in(lane_of(instance_id)).filter(name=TURN_FIBER, status=FiberStatus.PENDING).exists()


def turns_here(instance: AgentInstance) -> list[Turn]:
    """The same, of the instance's current session alone."""
    return [turn for turn in active_turns(instance.pk) if turn.session_id == instance.session_id]


def running_turn_id(instance: AgentInstance) -> str:
    """Id of the turn that has begun in the current session and has not ended, or an empty text. One statement."""
    row = _RUNNING.one(lane_of(instance.pk), instance.session_id, instance.generation)
    return "" if row is None else str(row[0])
