"""Starts what is due. Part of the sweep that every worker runs: any number of them at once fire an occurrence once.

The conditional UPDATE that arms the next occurrence decides who fires this one, in the transaction that inserts its
fiber: a process that dies in between has done neither. The key of the fiber is the occurrence's, as a second lock.
"""

import logging
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import BooleanField, Exists, ExpressionWrapper, F, OuterRef, Q
from django.db.models.functions import Now

from fibers import services
from fibers.conf import fiber_settings
from fibers.core.schedules.states import ScheduleEvent, ScheduleStatus, advance, sources
from fibers.core.states import METHOD_MISSING, TERMINAL, UNKNOWN_DURABLE, FiberStatus
from fibers.errors import ScheduleInvalid
from fibers.models import Fiber
from fibers.models.schedules import Schedule, ScheduleRun
from fibers.schedules.clock import database_now

logger = logging.getLogger(__name__)

BATCH: Final = 100
ROUNDS: Final = 10
KEPT_RUNS: Final = 20
"""Runs of one schedule that are kept besides those that go on."""
WITHOUT_FUNCTION: Final = (UNKNOWN_DURABLE, METHOD_MISSING)
"""Reasons of fibers that wait for a deploy."""
HUNG: Final = "hung"
"""Reason of a fiber that was stopped because the next occurrence was due and it had run for too long."""


def occurrence_key(schedule_id: str, due: datetime) -> str:
    """The idempotency key of an occurrence: one fiber has it, whichever process fires."""
    return f"schedule:{schedule_id}:{due.astimezone(UTC).strftime('%Y%m%dT%H%M%S.%fZ')}"


def fire_due() -> int:
    """Fire every occurrence that is due and arm the next ones; return how many began.

    **Concurrency:** any number at once, outside a transaction. Reads first, one query where nothing is due. What was
    missed while no worker lived fires once.
    """
    fired = 0
    for _ in range(ROUNDS):
        due = list(
            Schedule.objects.filter(status=ScheduleStatus.ACTIVE, next_at__lte=Now()).order_by("next_at", "pk")[:BATCH]
        )
        if not due:
            break
        now = database_now()
        began = sum(_fire(schedule, now) for schedule in due)
        fired += began
        if len(due) < BATCH:
            break
    return fired


def _fire(schedule: Schedule, now: datetime) -> bool:
    assert schedule.next_at is not None
    try:
        next_at = schedule.timing.next_after(now, schedule.next_at) if schedule.timing.is_repeating else None
    except ScheduleInvalid as error:  # its zone is gone, for instance: the others go on
        break_schedule(schedule, str(error))
        return False
    if next_at is not None and _is_held_up(schedule, now, next_at):
        return False
    return _begin(schedule, next_at)


@transaction.atomic
def _begin(schedule: Schedule, next_at: datetime | None) -> bool:
    """Arm the next occurrence and start this one. False: another sweeper did, or it was changed."""
    assert schedule.next_at is not None
    event = ScheduleEvent.FIRE_LAST if next_at is None else ScheduleEvent.FIRE
    won = Schedule.objects.filter(pk=schedule.pk, status__in=sources(event), revision=schedule.revision).update(
        status=advance(ScheduleStatus(schedule.status), event),
        next_at=next_at,
        last_at=schedule.next_at,
        skipped=0,
        revision=F("revision") + 1,
        updated_at=Now(),
    )
    if not won:
        return False
    start_run(schedule, schedule.next_at, occurrence_key(schedule.pk, schedule.next_at))
    return True


def start_run(schedule: Schedule, due: datetime, key: str, *, is_test: bool = False) -> Fiber:
    """Insert the fiber of an occurrence and its run, and drop the oldest runs. In the caller's transaction."""
    fiber = services.start_fiber(
        schedule.function,
        # The input stays in the schedule's row: it may be people's words, and rows of fibers are read by more people.
        {"schedule": {"id": schedule.pk, "key": key, "due": due.astimezone(UTC).isoformat(), "is_test": is_test}},
        # Runs of one owner do not keep those of others waiting.
        share=None if schedule.owner_id is None else f"schedules:{schedule.owner_id}",
        owner_id=schedule.owner_id,
        key=key,
        max_retries=schedule.max_retries,
    )
    ScheduleRun.objects.get_or_create(
        fiber=fiber, defaults={"schedule_id": schedule.pk, "due_at": due, "is_test": is_test}
    )
    _drop_old_runs(schedule.pk)
    return fiber


def _drop_old_runs(schedule_id: str) -> None:
    ended = ScheduleRun.objects.filter(schedule_id=schedule_id, fiber__status__in=TERMINAL).order_by(
        "-created_at", "-pk"
    )
    old = list(ended.values_list("pk", flat=True)[KEPT_RUNS : KEPT_RUNS + BATCH])
    if old:
        ScheduleRun.objects.filter(pk__in=old).delete()


def _is_held_up(schedule: Schedule, now: datetime, next_at: datetime) -> bool:
    """Whether the run before goes on. Then this occurrence is left out, or waits for the end of one that hangs.

    Where runs may overlap, one holds the next up as long as it waits for a deploy that has its function: what is
    missed until then runs once.
    """
    runs = ScheduleRun.objects.filter(schedule_id=schedule.pk, is_test=False)
    waiting = Q(fiber__status=FiberStatus.PENDING, fiber__reason__in=WITHOUT_FUNCTION)
    before = (
        runs.filter(waiting if schedule.can_overlap else ~Q(fiber__status__in=TERMINAL))
        .annotate(waits=ExpressionWrapper(waiting, output_field=BooleanField()))
        .order_by("created_at")
        .values_list("fiber_id", "created_at", "waits")
        .first()
    )
    if before is None:
        return False
    fiber_id, began, waits = before
    if not waits and now - began > timedelta(seconds=schedule.max_run_seconds):
        services.cancel_fiber(fiber_id, reason=HUNG)  # this occurrence stays due, and begins after that
        return True
    _leave_out(schedule, next_at)
    return True


def _leave_out(schedule: Schedule, next_at: datetime) -> None:
    """Arm the next occurrence without beginning this one."""
    Schedule.objects.filter(pk=schedule.pk, status__in=sources(ScheduleEvent.FIRE), revision=schedule.revision).update(
        next_at=next_at,
        skipped=F("skipped") + 1,
        revision=F("revision") + 1,
        updated_at=Now(),
    )


def break_schedule(schedule: Schedule, text: str) -> None:
    """Take a schedule out of the sweep whose next instant cannot be computed, with the reason."""
    Schedule.objects.filter(pk=schedule.pk, status__in=sources(ScheduleEvent.BREAK), revision=schedule.revision).update(
        status=advance(ScheduleStatus.ACTIVE, ScheduleEvent.BREAK),
        error=text,
        revision=F("revision") + 1,
        updated_at=Now(),
    )
    logger.warning("schedule broken", extra={"action": "schedule_broken", "schedule_id": schedule.pk})


def prune_ended() -> int:
    """Delete schedules that ended a while ago, with their runs; return how many. Those with a run to come stay."""
    under_way = ScheduleRun.objects.filter(schedule_id=OuterRef("pk")).exclude(fiber__status__in=TERMINAL)
    ended = Schedule.objects.filter(
        ~Exists(under_way),
        status=ScheduleStatus.ENDED,
        updated_at__lt=Now() - timedelta(seconds=fiber_settings.keep_finished_seconds),
    )
    ids = list(ended.order_by("updated_at").values_list("pk", flat=True)[:BATCH])
    if ids:
        Schedule.objects.filter(pk__in=ids, status=ScheduleStatus.ENDED).delete()
    return len(ids)
