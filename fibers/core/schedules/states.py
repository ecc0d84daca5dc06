"""The states of a schedule and the only table of moves between them.

Every UPDATE of `Schedule.status` takes its old and new value from here. Cancelling deletes the row, from every state.
"""

from enum import StrEnum

from fibers.errors import IllegalMove


class ScheduleStatus(StrEnum):
    """The status of a schedule. Only an active one is looked for by the sweep."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"
    BROKEN = "broken"


class ScheduleEvent(StrEnum):
    """Events of a schedule."""

    FIRE = "fire"  # an occurrence began, and another one follows
    FIRE_LAST = "fire_last"  # an occurrence began, and none follows
    PAUSE = "pause"  # a person or code holds it
    RESUME = "resume"  # it is armed again
    EDIT = "edit"  # other times: it is armed again
    BREAK = "break"  # its next instant cannot be computed


_S, _E = ScheduleStatus, ScheduleEvent

MOVES: dict[tuple[ScheduleStatus, ScheduleEvent], ScheduleStatus] = {
    (_S.ACTIVE, _E.FIRE): _S.ACTIVE,
    (_S.ACTIVE, _E.FIRE_LAST): _S.ENDED,
    (_S.ACTIVE, _E.PAUSE): _S.PAUSED,
    (_S.ACTIVE, _E.EDIT): _S.ACTIVE,
    (_S.ACTIVE, _E.BREAK): _S.BROKEN,
    (_S.PAUSED, _E.RESUME): _S.ACTIVE,
    (_S.PAUSED, _E.EDIT): _S.PAUSED,
    (_S.ENDED, _E.EDIT): _S.ACTIVE,
    (_S.BROKEN, _E.EDIT): _S.ACTIVE,
    (_S.BROKEN, _E.RESUME): _S.ACTIVE,
}


def advance(status: ScheduleStatus, event: ScheduleEvent) -> ScheduleStatus:
    """Return the state after the event. Errors: `IllegalMove`."""
    try:
        return MOVES[status, event]
    except KeyError:
        raise IllegalMove(f"{event.value!r} does not apply to a schedule that is {status.value}") from None


def sources(event: ScheduleEvent) -> tuple[ScheduleStatus, ...]:
    """Return the states from which the event is allowed."""
    return tuple(status for status, move in MOVES if move is event)
