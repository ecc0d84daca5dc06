"""The limits of a detached run: a budget, and a time without progress. Sync; every instant is the database's clock."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now

from chat.agent.values.runs import BUDGET_EXCEEDED, NO_PROGRESS, Detached, failed
from chat.instances.runs import end_run_as
from chat.models import StreamSegment, Turn
from chat.models.runs import AgentRun
from chat.turns.delegation.ending import found_by
from chat.turns.delegation.stopping import stop_instance
from fibers.core.states import FiberStatus
from fibers.models import FiberStep
from tools_app.calls.selectors import open_calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """When to look again. `seconds` 0: only the end of the run is waited for."""

    seconds: float


def check_limits(run_id: str) -> Next | None:
    """End a detached run that is beyond a limit; `None` when there is nothing to watch any more."""
    run = AgentRun.objects.filter(pk=run_id, finished_at=None).annotate(now=Now()).first()
    if run is None:
        return None
    now: datetime = run.now
    limits = _limits(run)
    deadlines: list[tuple[datetime, str, str]] = []
    if limits.budget_seconds > 0:
        end = run.created_at + timedelta(seconds=limits.budget_seconds)
        deadlines.append((end, BUDGET_EXCEEDED, f"The run took longer than {limits.budget_seconds:g} s."))
    if limits.no_progress_seconds > 0:
        last = now if _waits(run) else _last_progress(run)
        end = last + timedelta(seconds=limits.no_progress_seconds)
        deadlines.append((end, NO_PROGRESS, f"The run made no progress for {limits.no_progress_seconds:g} s."))
    for end, reason, text in sorted(deadlines):
        if end <= now:
            _give_up(run, limits, reason, text)
            return None
    return Next(seconds=min(((end - now).total_seconds() for end, _, _ in deadlines), default=0.0))


def _limits(run: AgentRun) -> Detached:
    names = Detached.__dataclass_fields__
    return Detached(**{name: value for name, value in run.options.items() if name in names})


def _give_up(run: AgentRun, limits: Detached, reason: str, text: str) -> None:
    if limits.stops_child and run.child_id is not None:
        stop_instance(run.child_id)
    outcome = failed(
        run.run_id,
        "interrupted",
        text,
        retryable=True,
        reason=reason,
        childStillRunning=not limits.stops_child,
        summary=found_by(run) or None,
    )
    with transaction.atomic():
        end_run_as(run.pk, outcome, cause="limit")


def _turns(run: AgentRun) -> Any:
    return Turn.objects.filter(instance_id=run.child_id)


def _waits(run: AgentRun) -> bool:
    """Whether the child waits for a person, a client, an answer: that is not idle."""
    if run.child_id is None:
        return False
    return _turns(run).filter(fiber__status=FiberStatus.PARKED).exists() or open_calls(run.child_id).exists()


def _last_progress(run: AgentRun) -> datetime:
    """The last step, chunk or report of the child."""
    active = _turns(run).filter(finished_at=None)
    turn_ids = list(active.values_list("pk", flat=True))
    found: list[datetime | None] = [
        run.created_at,
        run.progress_at,
        _turns(run).aggregate(last=Max("finished_at"))["last"],
        active.aggregate(last=Max("started_at"))["last"],
        StreamSegment.objects.filter(stream__in=turn_ids).aggregate(last=Max("created_at"))["last"],
        FiberStep.objects.filter(fiber__in=active.values("fiber")).aggregate(last=Max("created_at"))["last"],
    ]
    return max(instant for instant in found if instant is not None)
