"""Work for a person, over all conversations of theirs: under way, planned, ended lately. Reads only.

Turns, schedules and background work are different rows; people see one list of each section, a page at a time. A page
takes the same number of queries whatever is in it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Literal

from django.db.models import Case, DateTimeField, F, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Now

from chat.background import rows
from chat.core.durable_names import TURN_FIBER
from chat.errors import InputInvalid
from chat.models import AgentInstance, Turn
from chat.schedules.outcomes import OccurrenceView, last_runs
from chat.turns.state.status import turn_status
from fibers.core.schedules.states import ScheduleStatus
from fibers.core.states import FiberStatus
from fibers.models import Fiber
from fibers.models.schedules import Schedule

ENDED_DAYS: Final = 7
"""How far back ended background work is listed."""
_FAR: Final = datetime(9000, 1, 1, tzinfo=UTC)


class WorkSection(StrEnum):
    """A section of the list."""

    NOW = "now"  # turns and background work that have not ended
    SCHEDULES = "schedules"  # the next one first; what is paused or broken last
    ENDED = "ended"  # background work of the last days


Verb = Literal["cancel", "pause", "resume", "run", "retry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """A turn, a schedule, or a piece of background work, with its conversation.

    `name`: of a schedule its title, of background work its method; empty for a turn. `status`: in the words of the API
    of its kind. `since`: when it began, or was asked for. `verbs`: what may be asked of it now.
    """

    kind: Literal["turn", "schedule", "background"]
    id: str
    instance_id: str
    title: str
    agent: str
    name: str
    status: str
    since: datetime | None
    ended_at: datetime | None
    next_at: datetime | None
    last_run: OccurrenceView | None
    error: str
    verbs: list[Verb]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPage:
    """A page. `next_cursor`: nothing at the end."""

    items: list[WorkItem]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class _Named:
    title: str
    agent: str


def work_page(user_id: Any, section: WorkSection, *, cursor: str = "", limit: int = 50) -> WorkPage:
    """A page of what is at work for a person. Three queries, five for schedules, one more with a cursor.

    Shape: `cursor` is the former page's `next_cursor`. Errors: `InputInvalid` for a cursor that is none.
    """
    if section is WorkSection.SCHEDULES:
        return _schedules(user_id, cursor, limit)
    mine = Fiber.objects.filter(owner_id=user_id)
    if section is WorkSection.NOW:
        found = mine.filter(Q(name=TURN_FIBER) | Q(scope__isnull=False), finished_at=None)
    else:
        lately = Now() - timedelta(days=ENDED_DAYS)
        found = mine.filter(scope__isnull=False, finished_at__isnull=False, created_at__gt=lately)
    if cursor:
        at = _place(mine, cursor, "created_at")
        found = found.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=cursor))
    items = list(found.order_by("-created_at", "-pk")[: limit + 1])
    return WorkPage(items=_of_fibers(items[:limit]), next_cursor=_next(items, limit))


def _place(rows_of: QuerySet[Any], cursor: str, column: str) -> Subquery:
    """The instant of the row that a cursor names, compared where it is stored: databases round instants differently.

    Errors: `InputInvalid`.
    """
    named = rows_of.filter(pk=cursor)
    if not named.exists():
        raise InputInvalid("The cursor is not one of ours.")
    return Subquery(named.values(column)[:1])


def _next(items: Sequence[Any], limit: int) -> str | None:
    return items[limit - 1].pk if len(items) > limit else None


def _of_fibers(fibers: Sequence[Fiber]) -> list[WorkItem]:
    turns = {
        turn.fiber_id: turn
        for turn in Turn.objects.filter(fiber_id__in=[fiber.pk for fiber in fibers if fiber.name == TURN_FIBER])
    }
    named = _named([*(turn.instance_id for turn in turns.values()), *(fiber.scope or "" for fiber in fibers)])
    found = (_of_fiber(fiber, turns.get(fiber.pk), named) for fiber in fibers)
    return [item for item in found if item is not None]


def _of_fiber(fiber: Fiber, turn: Turn | None, named: dict[str, _Named]) -> WorkItem | None:
    """Nothing for what was deleted at this moment."""
    is_turn = fiber.name == TURN_FIBER
    instance_id = turn.instance_id if turn is not None else "" if is_turn else fiber.scope or ""
    conversation = named.get(instance_id)
    if conversation is None:
        return None
    status = FiberStatus(fiber.status)
    verbs: list[Verb] = []
    if fiber.finished_at is None and fiber.cancel_requested_at is None:
        verbs.append("cancel")
    if not is_turn and rows.can_restart(fiber):
        verbs.append("retry")
    return WorkItem(
        kind="turn" if is_turn else "background",
        id=turn.pk if turn is not None else fiber.pk,
        instance_id=instance_id,
        title=conversation.title,
        agent=conversation.agent,
        name="" if is_turn else str((fiber.payload or {}).get("method", "")),
        status=turn_status(status, fiber.reason).value if is_turn else status.value,
        since=fiber.started_at or fiber.created_at,
        ended_at=fiber.finished_at,
        next_at=fiber.available_at if status is FiberStatus.PENDING and fiber.retries else None,
        last_run=None,
        error=_error(fiber),
        verbs=verbs,
    )


def _error(fiber: Fiber) -> str:
    """The text for people. An agent's own errors are in the log alone."""
    error = fiber.error or {}
    return "" if error.get("code") == "internal" else str(error.get("message", ""))


def _schedules(user_id: Any, cursor: str, limit: int) -> WorkPage:
    far = Value(_FAR, output_field=DateTimeField())
    due = Case(When(status=ScheduleStatus.ACTIVE, then=Coalesce(F("next_at"), far)), default=far)
    found = Schedule.objects.filter(owner_id=user_id).exclude(status=ScheduleStatus.ENDED).annotate(due=due)
    if cursor:
        at = _place(Schedule.objects.filter(owner_id=user_id).annotate(due=due), cursor, "due")
        found = found.filter(Q(due__gt=at) | Q(due=at, pk__gt=cursor))
    items = list(found.order_by("due", "pk")[: limit + 1])
    page = items[:limit]
    runs = last_runs(page) if page else {}
    named = _named(schedule.scope for schedule in page)
    shown = [
        _of_schedule(schedule, runs.get(schedule.pk), named[schedule.scope])
        for schedule in page
        if schedule.scope in named
    ]
    return WorkPage(items=shown, next_cursor=_next(items, limit))


def _of_schedule(schedule: Schedule, run: OccurrenceView | None, conversation: _Named) -> WorkItem:
    payload = schedule.payload or {}
    method = payload.get("method") or payload.get("callable") or payload.get("task") or ""
    status = ScheduleStatus(schedule.status)
    verbs: list[Verb] = ["pause", "run"] if status is ScheduleStatus.ACTIVE else []
    if status is ScheduleStatus.PAUSED:
        verbs = ["resume", "run"]
    return WorkItem(
        kind="schedule",
        id=schedule.pk,
        instance_id=schedule.scope,
        title=conversation.title,
        agent=conversation.agent,
        name=schedule.title or str(payload.get("prompt") or method)[:200],
        status=status.value,
        since=schedule.created_at,
        ended_at=None,
        next_at=schedule.next_at if status is ScheduleStatus.ACTIVE else None,
        last_run=run,
        error=schedule.error,
        verbs=verbs,
    )


def _named(instance_ids: Iterable[str]) -> dict[str, _Named]:
    found = AgentInstance.objects.filter(pk__in=set(instance_ids)).values_list("pk", "title", "agent")
    return {pk: _Named(title, agent) for pk, title, agent in found}
