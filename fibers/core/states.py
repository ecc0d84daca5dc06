"""The states of a fiber and the only table of moves between them.

Every UPDATE of `Fiber.status` takes its old and new value from here (`sources`, `advance`). A terminal state is left
by three moves alone: a person or code runs a failed or interrupted fiber again, says how an interrupted one has ended,
or runs one again that was stopped with what it belongs to (`HALTED`).
"""

from enum import StrEnum

from fibers.errors import IllegalMove


class FiberStatus(StrEnum):
    """The status of a fiber. One column, one table of transitions, no second status."""

    PENDING = "pending"
    RUNNING = "running"
    PARKED = "parked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


TERMINAL = frozenset({FiberStatus.COMPLETED, FiberStatus.FAILED, FiberStatus.CANCELLED, FiberStatus.INTERRUPTED})


RECOVERED = "recovered"
"""Reason of a pending fiber whose worker was lost."""
WORKER_LOST = "worker_lost"
"""Reason of an interrupted fiber whose worker was lost and whose function decides itself about going on."""
UNKNOWN_DURABLE = "unknown_durable"
"""Reason of a pending fiber whose function no worker has: it waits for a deploy that brings it."""
METHOD_MISSING = "method_missing"
"""The same where the function is one of a family (an agent's methods) that is there."""

HALTED = "halted"
"""Reason of a cancelled fiber that was stopped with what it belongs to. When that is back, people may run it again."""

OUT_OF_MEMORY = "out_of_memory"
"""Reason of a running fiber whose worker was killed because memory ran out; of an ended one that was given up so."""


class FiberEvent(StrEnum):
    """Events of a fiber."""

    CLAIM = "claim"  # a worker takes the lease
    COMPLETE = "complete"  # the function returned
    FAIL = "fail"  # the function failed for good
    RETRY = "retry"  # the function failed and may try again
    PARK = "park"  # the function waits for an answer
    RESUME = "resume"  # what it waited for is there
    HAND_BACK = "hand_back"  # the worker stops
    RECOVER = "recover"  # the lease ran out
    SEAL = "seal"  # it is given up
    CANCEL = "cancel"  # it was stopped
    REQUEUE = "requeue"  # a person runs it again
    REOPEN = "reopen"  # a person runs it again that was halted
    RESOLVE_COMPLETED = "resolve_completed"  # a person or code says that the work is done
    RESOLVE_FAILED = "resolve_failed"  # that it has failed
    RESOLVE_CANCELLED = "resolve_cancelled"  # that it is not wanted any more


class Interrupt(StrEnum):
    """Why a running function is stopped from outside."""

    CANCEL = "cancel"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease_lost"


_S, _E = FiberStatus, FiberEvent

MOVES: dict[tuple[FiberStatus, FiberEvent], FiberStatus] = {
    (_S.PENDING, _E.CLAIM): _S.RUNNING,
    (_S.PENDING, _E.CANCEL): _S.CANCELLED,
    (_S.PENDING, _E.SEAL): _S.INTERRUPTED,
    (_S.RUNNING, _E.COMPLETE): _S.COMPLETED,
    (_S.RUNNING, _E.FAIL): _S.FAILED,
    (_S.RUNNING, _E.RETRY): _S.PENDING,
    (_S.RUNNING, _E.PARK): _S.PARKED,
    (_S.RUNNING, _E.RESUME): _S.PENDING,
    (_S.RUNNING, _E.HAND_BACK): _S.PENDING,
    (_S.RUNNING, _E.RECOVER): _S.PENDING,
    (_S.RUNNING, _E.SEAL): _S.INTERRUPTED,
    (_S.RUNNING, _E.CANCEL): _S.CANCELLED,
    (_S.PARKED, _E.RESUME): _S.PENDING,
    (_S.PARKED, _E.CANCEL): _S.CANCELLED,
    (_S.FAILED, _E.REQUEUE): _S.PENDING,
    (_S.INTERRUPTED, _E.REQUEUE): _S.PENDING,
    (_S.CANCELLED, _E.REOPEN): _S.PENDING,
    (_S.INTERRUPTED, _E.RESOLVE_COMPLETED): _S.COMPLETED,
    (_S.INTERRUPTED, _E.RESOLVE_FAILED): _S.FAILED,
    (_S.INTERRUPTED, _E.RESOLVE_CANCELLED): _S.CANCELLED,
}


def advance(status: FiberStatus, event: FiberEvent) -> FiberStatus:
    """Return the state after the event. Errors: `IllegalMove`."""
    try:
        return MOVES[status, event]
    except KeyError:
        raise IllegalMove(f"{event.value!r} does not apply to a {status.value} fiber") from None


def may_run_again(status: str, reason: str) -> bool:
    """Whether a fiber that has ended so may be run again."""
    return status in sources(FiberEvent.REQUEUE) or (status in sources(FiberEvent.REOPEN) and reason == HALTED)


def sources(event: FiberEvent) -> tuple[FiberStatus, ...]:
    """Return the states from which the event is allowed."""
    return tuple(status for status, move in MOVES if move is event)
