"""The recovery budget: limits how often a fiber is run again after its worker died.

An attempt is spent only without progress: a newly settled step or a shown chunk resets the count. The clock of the
no-progress window starts with the first recovery that found none, so that an hour in which no worker ran at all does
not count against a fiber. What waits is parked and holds no worker, so it is never judged.

Losses of one fiber that follow one another are one incident, which is over when none came for an hour. Within it work
and lost memory are counted, progress or not: they bound what a fiber may cost that always loses its worker.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from fibers.core.states import OUT_OF_MEMORY
from thinkproject.kernel.jsonvalue import JSONObject

INCIDENT_SECONDS: Final = 3600.0
"""An incident is over when no loss came for so long."""


class Exhausted(StrEnum):
    """Why a fiber is given up. Stored as the fiber's reason."""

    ATTEMPTS = "recovery_attempts_exhausted"
    NO_PROGRESS = "no_progress_timeout"
    WORK = "recovery_work_exhausted"
    MEMORY = OUT_OF_MEMORY
    PAUSED = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision about a fiber with an expired lease: run it again, or abandon it."""

    exhausted: Exhausted | None
    recoveries: int  # in a row without progress, this one included
    is_stalled: bool  # no progress since the last recovery


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Losses of a fiber that follow one another. `counted_at`: the last loss that spent an attempt.

    `work`: steps that were settled since the first loss; `steps`: those that were settled before it.
    """

    id: str
    since: datetime
    lost_at: datetime
    counted_at: datetime
    losses: int = 0
    memory_losses: int = 0
    steps: int = 0
    work: int = 0

    @property
    def counts(self) -> bool:
        """Whether the last loss spends an attempt."""
        return self.counted_at == self.lost_at

    def to_json(self) -> JSONObject:
        """The stored shape."""
        instants = {name: getattr(self, name).isoformat() for name in ("since", "lost_at", "counted_at")}
        counts = {name: getattr(self, name) for name in ("losses", "memory_losses", "steps", "work")}
        return {"id": self.id, **instants, **counts}


def read_incident(value: JSONObject | None) -> Incident | None:
    """Read the stored shape."""
    if not value:
        return None
    instants = {name: datetime.fromisoformat(value[name]) for name in ("since", "lost_at", "counted_at")}
    return Incident(**{**value, **instants})


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A worker was lost. `steps`: settled so far. `is_memory`: it was killed because memory ran out."""

    at: datetime
    steps: int = 0
    is_memory: bool = False


def next_incident(before: Incident | None, loss: Loss, *, new_id: str, debounce_seconds: float) -> Incident:
    """The incident with one more loss.

    **Shape:** a loss within `debounce_seconds` of the last one that counted does not count: a
    deploy that restarts workers one after the other is one loss.
    """
    at = loss.at
    if before is None or at - before.lost_at > timedelta(seconds=INCIDENT_SECONDS):
        memory_losses = int(loss.is_memory)
        return Incident(
            id=new_id, since=at, lost_at=at, counted_at=at, losses=1, memory_losses=memory_losses, steps=loss.steps
        )
    counts = at - before.counted_at >= timedelta(seconds=debounce_seconds)
    return replace(
        before,
        lost_at=at,
        counted_at=at if counts else before.counted_at,
        losses=before.losses + 1,
        memory_losses=before.memory_losses + int(loss.is_memory),
        work=max(0, loss.steps - before.steps),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryBudget:
    """Bounds of recovering. `max_work`: settled steps of an incident; `max_memory_losses`: workers out of memory.

    `is_paused`: it is never recovered by itself; someone has it run again.
    """

    max_recoveries: int = 10
    no_progress_seconds: float = 300.0
    max_work: int = 1000
    max_memory_losses: int = 3
    is_paused: bool = False

    def judge(
        self, *, recoveries: int, has_progressed: bool, stalled_seconds: float, incident: Incident | None = None
    ) -> Verdict:
        """Judge one lost lease.

        **Shape:** `recoveries` so far in a row without progress; `stalled_seconds` since the first of them (0 if none);
        `incident`: with this loss.
        """
        exhausted = None
        if self.is_paused:
            exhausted = Exhausted.PAUSED
        elif incident is not None and incident.memory_losses > self.max_memory_losses:
            exhausted = Exhausted.MEMORY
        elif incident is not None and incident.work > self.max_work:
            exhausted = Exhausted.WORK
        if has_progressed:
            return Verdict(exhausted=exhausted, recoveries=0, is_stalled=False)
        spent = recoveries + 1 if incident is None or incident.counts else max(recoveries, 1)
        if exhausted is None and spent > self.max_recoveries:
            exhausted = Exhausted.ATTEMPTS
        elif exhausted is None and stalled_seconds > self.no_progress_seconds:
            exhausted = Exhausted.NO_PROGRESS
        return Verdict(exhausted=exhausted, recoveries=spent, is_stalled=True)
