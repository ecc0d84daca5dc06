"""Outcomes of the runs of schedules, for people."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

from django.db.models import OuterRef, Subquery

from chat.models import Turn
from chat.turns.state.status import TurnStatus, turn_status
from fibers.core.states import TERMINAL, FiberStatus
from fibers.models.schedules import Schedule, ScheduleRun
from fibers.schedules.firing import WITHOUT_FUNCTION
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.phrases import Phrase

RunStatus: TypeAlias = Literal["waiting", "running", "completed", "failed", "stopped", "left_out"]

LEFT_OUT_REASON: Final = "turn_running"
"""Reason of the fiber of a prompt that was left out: the turn of the one before goes on or waits for a person."""

WAITS_FOR_DEPLOY: Final = Phrase("No worker has its agent or its method now. It runs when one has.")

_BY_FIBER: Final[Mapping[str, RunStatus]] = {
    FiberStatus.PENDING: "waiting",
    FiberStatus.PARKED: "waiting",
    FiberStatus.RUNNING: "running",
    FiberStatus.COMPLETED: "completed",
    FiberStatus.FAILED: "failed",
    FiberStatus.INTERRUPTED: "failed",
    FiberStatus.CANCELLED: "stopped",
}
_BY_TURN: Final[Mapping[TurnStatus, RunStatus]] = {
    TurnStatus.COMPLETED: "completed",
    TurnStatus.ERROR: "failed",
    TurnStatus.ABORTED: "stopped",
    TurnStatus.SKIPPED: "stopped",
    TurnStatus.RUNNING: "running",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OccurrenceView:
    """One run of a schedule. `turn_id`: of a prompt; how it went is how its turn went."""

    id: str
    schedule_id: str
    due_at: datetime
    started_at: datetime
    finished_at: datetime | None
    status: RunStatus
    is_test: bool
    error: str
    turn_id: str | None
    fiber_id: str


def runs_of(schedule_id: str) -> list[OccurrenceView]:
    """The runs of a schedule that are kept, newest first."""
    rows = ScheduleRun.objects.filter(schedule_id=schedule_id).select_related("fiber")
    return _views(list(rows.order_by("-created_at", "-pk")[:100]))


def last_runs(schedules: Iterable[Schedule]) -> dict[str, OccurrenceView]:
    """The last run of each schedule that has one, by the schedule's id. Two queries."""
    ids = [schedule.pk for schedule in schedules]
    newest = ScheduleRun.objects.filter(schedule_id=OuterRef("pk")).order_by("-created_at", "-pk").values("pk")[:1]
    last = Schedule.objects.filter(pk__in=ids).annotate(last_run=Subquery(newest)).values_list("last_run", flat=True)
    rows = list(ScheduleRun.objects.filter(pk__in=[pk for pk in last if pk is not None]).select_related("fiber"))
    return {view.schedule_id: view for view in _views(rows)}


def _views(rows: Sequence[ScheduleRun]) -> list[OccurrenceView]:
    turn_ids = [turn_id for row in rows if (turn_id := _turn_id(row.fiber.result)) is not None]
    turns = {turn.pk: turn for turn in Turn.objects.select_related("fiber").filter(pk__in=turn_ids)} if turn_ids else {}
    return [_view(row, turns.get(_turn_id(row.fiber.result) or "")) for row in rows]


def _view(row: ScheduleRun, turn: Turn | None) -> OccurrenceView:
    fiber = row.fiber
    status, finished, error = _BY_FIBER[fiber.status], fiber.finished_at, (fiber.error or {}).get("message", "")
    if fiber.status == FiberStatus.PENDING and fiber.reason in WITHOUT_FUNCTION:
        error = str(WAITS_FOR_DEPLOY)
    if fiber.status == FiberStatus.CANCELLED and fiber.reason == LEFT_OUT_REASON:
        status = "left_out"
    if turn is not None:
        status = _BY_TURN.get(turn_status(turn.fiber.status, turn.fiber.reason), "waiting")
        finished = turn.finished_at if turn.fiber.status in TERMINAL else None
        error = turn.error_text
    return OccurrenceView(
        id=str(row.pk),
        schedule_id=row.schedule_id,
        due_at=row.due_at,
        started_at=row.created_at,
        finished_at=finished,
        status=status,
        is_test=row.is_test,
        error=error,
        turn_id=None if turn is None else turn.pk,
        fiber_id=fiber.pk,
    )


def _turn_id(result: JSONValue) -> str | None:
    found = result.get("turn_id") if isinstance(result, dict) else None
    return found if isinstance(found, str) else None
