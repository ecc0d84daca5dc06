"""Errors of durable execution, and the ways in which a durable function ends without a result.

ThinkError
└─ FiberError     FiberNotFound · LeaseLost · StepMismatch · UnknownDurable · FiberKeyTaken · IllegalMove
                  · OutsideFiber · FiberStopped · WakeRejected · CheckpointRegression · Failed · EffectInvalid
└─ ScheduleError  ScheduleInvalid · ScheduleNotFound · SchedulesFull

A `FiberError` ends the attempt of the fiber in which it is raised; code inside one may go on after a `ScheduleError`.

`Cancelled`, `GivenUp` and `Parked` are control flow and no errors: they derive from `BaseException`, so that a
developer's `except Exception` cannot swallow them (`asyncio.CancelledError` does the same).
"""

from collections.abc import Sequence

from fibers.waits import Wait
from thinkproject.kernel.errors import Conflict, Invalid, NotFound, ThinkError
from thinkproject.kernel.jsonvalue import JSONValue


class FiberError(ThinkError):
    """Something went wrong in durable execution."""


class FiberNotFound(FiberError, NotFound):
    """There is no such fiber."""


class LeaseLost(FiberError, Conflict):
    """Another worker runs this fiber now; writes from here do not count."""


class StepMismatch(FiberError, Conflict):
    """This step has been recorded already."""


class UnknownDurable(FiberError, Invalid):
    """No durable function has this name."""


class FiberKeyTaken(FiberError, Conflict):
    """The idempotency key belongs to a fiber of another function."""


class IllegalMove(FiberError, Conflict):
    """A fiber cannot go there from where it stands."""


class OutsideFiber(FiberError, Conflict):
    """This works inside a running fiber only."""


class WakeRejected(FiberError, Conflict):
    """This wake is claimed by another runner, or is over."""


class CheckpointRegression(FiberError, Conflict):
    """A runner is further than this checkpoint says."""


class FiberStopped(FiberError, Conflict):
    """The work was stopped."""


class EffectInvalid(FiberError, Invalid):
    """There can be no such effect of a queryset."""


class ScheduleError(ThinkError):
    """Something is wrong with a schedule."""


class ScheduleInvalid(ScheduleError, Invalid):
    """There can be no such schedule."""


class ScheduleNotFound(ScheduleError, NotFound):
    """There is no such schedule."""


class SchedulesFull(ScheduleError, Conflict):
    """The owner has as many schedules as are allowed."""


class Failed(FiberError):
    """The durable function failed, with a code and a message of its own choice.

    `is_final=True` ends the fiber even when retries are left.
    """

    def __init__(self, error_code: str, message: str, *, is_final: bool = False) -> None:
        super().__init__(message, error_code=error_code)
        self.error_code = error_code
        self.is_final = is_final


class Cancelled(BaseException):
    """Raised by a durable function that stops because it was stopped, or finds that its work is not needed any more.

    The fiber ends as cancelled. `reason`: one word, for a fiber that was not cancelled from outside.
    """

    def __init__(self, result: JSONValue = None, *, reason: str = "") -> None:
        self.result = result
        self.reason = reason
        super().__init__()


class GivenUp(BaseException):
    """Raised by a durable function that does not go on by itself. The fiber ends as interrupted: it can be resolved.

    `reason`: one word.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Parked(BaseException):
    """Raised by a durable function that waits for an answer. The fiber holds no worker until it is resumed.

    `waits`: what for; `FiberContext.wait` raises it with one, a function that waits for several raises one with all.
    """

    def __init__(self, reason: str = "", waits: Sequence[Wait] = ()) -> None:
        self.reason = reason
        self.waits = tuple(waits)
        super().__init__(reason)
