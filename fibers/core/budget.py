"""The recovery budget: limits how often a fiber is run again after its worker died.

An attempt is spent only without progress: a newly settled step or a shown chunk resets the count. The clock of the
no-progress window starts with the first recovery that found none, so that an hour in which no worker ran at all does
not count against a fiber.
"""

from dataclasses import dataclass
from enum import StrEnum


class Exhausted(StrEnum):
    """Why a fiber is given up. Stored as the fiber's reason."""

    ATTEMPTS = "recovery_attempts_exhausted"
    NO_PROGRESS = "no_progress_timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision about a fiber with an expired lease: run it again, or abandon it."""

    exhausted: Exhausted | None
    recoveries: int  # in a row without progress, this one included
    is_stalled: bool  # no progress since the last recovery


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryBudget:
    """Bounds of recovering without progress."""

    max_recoveries: int = 10
    no_progress_seconds: float = 300.0

    def judge(self, *, recoveries: int, has_progressed: bool, stalled_seconds: float) -> Verdict:
        """Judge one lost lease.

        **Shape:** `recoveries` so far in a row without progress; `stalled_seconds` since the first of them (0 if none).
        """
        if has_progressed:
            return Verdict(exhausted=None, recoveries=0, is_stalled=False)
        spent = recoveries + 1
        exhausted = None
        if spent > self.max_recoveries:
            exhausted = Exhausted.ATTEMPTS
        elif stalled_seconds > self.no_progress_seconds:
            exhausted = Exhausted.NO_PROGRESS
        return Verdict(exhausted=exhausted, recoveries=spent, is_stalled=True)
