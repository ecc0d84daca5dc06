"""One pure table: from a fiber's status to the words of the wire and of the API.

There is no other status of a turn anywhere.
"""

from enum import StrEnum

from fibers.core.states import FiberStatus


class TurnStatus(StrEnum):
    """A turn's status for the API and the UI."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    ABORTED = "aborted"
    SKIPPED = "skipped"
    ERROR = "error"


SKIPPED_REASON = "skipped"
"""Reason of a cancelled fiber whose turn never ran because the conversation was cleared or a later one replaced it."""

STEERED_REASON = "steered"
"""Reason of a cancelled fiber whose turn never ran because another answer took its message in."""

DELETED_REASON = "deleted"
"""Reason of a cancelled fiber whose turn ended because its conversation, or its history, was deleted."""

_STATUS = {
    FiberStatus.PENDING: TurnStatus.PENDING,
    FiberStatus.RUNNING: TurnStatus.RUNNING,
    FiberStatus.PARKED: TurnStatus.RUNNING,
    FiberStatus.COMPLETED: TurnStatus.COMPLETED,
    FiberStatus.CANCELLED: TurnStatus.ABORTED,
    FiberStatus.FAILED: TurnStatus.ERROR,
    FiberStatus.INTERRUPTED: TurnStatus.ERROR,
}

FINAL = frozenset({TurnStatus.COMPLETED, TurnStatus.ABORTED, TurnStatus.SKIPPED, TurnStatus.ERROR})


def fiber_statuses(status: TurnStatus) -> list[FiberStatus]:
    """The inverse: fiber statuses of turns that may have this status. Skipped turns are among the aborted."""
    wanted = TurnStatus.ABORTED if status is TurnStatus.SKIPPED else status
    return [fiber for fiber, turn in _STATUS.items() if turn is wanted]


def turn_status(fiber_status: str, reason: str) -> TurnStatus:
    """Translate. The values of final statuses are the wire's `outcome`."""
    status = FiberStatus(fiber_status)
    if status is FiberStatus.CANCELLED and reason in {SKIPPED_REASON, STEERED_REASON}:
        return TurnStatus.SKIPPED
    return _STATUS[status]
