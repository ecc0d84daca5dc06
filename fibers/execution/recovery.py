"""The sweep: what lost its worker runs again or is abandoned, unclaimed fibers are sent again, old ones are deleted.

It also starts what schedules have due, and what effects of querysets find.

Runs in every worker, every two seconds, and may run in all of them at once: each row is moved by a conditional UPDATE.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import models, transaction
from django.db.models import DurationField, Exists, ExpressionWrapper, F, OuterRef
from django.db.models.functions import Coalesce, Now

from fibers import services
from fibers.conf import fiber_settings
from fibers.core.budget import Incident, Loss, RecoveryBudget, Verdict, next_incident, read_incident
from fibers.core.states import (
    METHOD_MISSING,
    OUT_OF_MEMORY,
    RECOVERED,
    UNKNOWN_DURABLE,
    WORKER_LOST,
    FiberEvent,
    FiberStatus,
    advance,
)
from fibers.effects.looking import look_due
from fibers.models import Fiber, FiberStep
from fibers.queue import leases
from fibers.queue.dispatch import dispatch_now, dispatch_on_commit, mark_dispatched
from fibers.queue.presence import served_lately
from fibers.registry import find_durable, known_names, queue_of, resume_windows, served_names
from fibers.schedules.firing import fire_due, prune_ended
from fibers.waits import RESUMED
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.retry import RetryPolicy

BATCH = 100
RUN_BATCH = 8  # of one sweep, that it has this process run
LOOK = 1000  # unclaimed fibers that are looked at for a batch
REDISPATCH_SWEEPS = 5.0  # times that a fiber lies unclaimed before it is sent again
UNKNOWN_AFTER = 2.0  # lies that long, in turns of sending again, before its function counts as unknown
LAPSED = "not_resumed_in_time"
DELAYS = RetryPolicy(max_seconds=5.0)  # what takes its workers down does so once in a lease at most, as it is
FINISHED = (FiberStatus.COMPLETED, FiberStatus.CANCELLED)
GIVEN_UP = (FiberStatus.FAILED, FiberStatus.INTERRUPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCounts:
    """Counts of one sweep."""

    recovered: int = 0
    ended: int = 0
    dispatched: int = 0
    fired: int = 0
    pruned: int = 0


def sweep(*, prune: bool = True, run: Callable[[Sequence[str]], None] | None = None) -> SweepCounts:
    """Recover, seal, fire what is due, send again and prune; return how many of each.

    `run` starts fibers in this process: those of families whose message was spent on a worker without their member.
    **Concurrency:** any number at once, outside a transaction. Reads first and writes only where there is something
    to do, so that an idle sweep never takes SQLite's write lock.
    """
    moved = [_recover(fiber) for fiber in _expired()]
    ended = sum(_seal_lapsed(fiber) for fiber in _lapsed())
    _expire_waits()
    _note_unknown(known_names())
    fired = fire_due() + look_due()
    return SweepCounts(
        fired=fired,
        recovered=sum(status is FiberStatus.PENDING for status in moved),
        ended=ended + sum(status not in {FiberStatus.PENDING, None} for status in moved),
        dispatched=_dispatch_unclaimed(served_names(), run),
        pruned=_prune() + prune_ended() if prune else 0,
    )


def _expired() -> list[Fiber]:
    stalled = ExpressionWrapper(Now() - F("stalled_at"), output_field=DurationField())
    lying = ExpressionWrapper(Now() - F("lease_until"), output_field=DurationField())
    found = Fiber.objects.expired().annotate(stalled_for=stalled, lying_for=lying, now=Now())
    return list(found.order_by("lease_until", "pk")[:BATCH])


@transaction.atomic
def _recover(fiber: Fiber) -> FiberStatus | None:
    """Move one fiber whose lease ran out. `None`: another sweeper did, or its worker beats again."""
    verdict, incident = _judge(fiber)
    event, reason = _event(fiber, verdict)
    status = advance(FiberStatus.RUNNING, event)
    is_over = event is not FiberEvent.RECOVER
    # The first repetition starts at once; what keeps losing its worker waits longer each time.
    streak = verdict.recoveries if incident.counts else incident.losses
    is_first = streak < 2 or not verdict.is_stalled
    delay = 0.0 if is_first else DELAYS.delay_seconds(streak - 1, jitter=0.5)
    moved = Fiber.objects.held(fiber.pk, fiber.fence).expired()
    won = moved.update(
        status=status,
        reason=reason,
        worker="",
        lease_until=None,
        recoveries=verdict.recoveries,
        recovered_progress=F("progress"),
        incident=incident.to_json(),
        stalled_at=_stalled_at(verdict, incident),
        error={"code": reason, "message": "the worker was lost", "retryable": False} if is_over else None,
        available_at=Now() + timedelta(seconds=delay),
        dispatched_at=None if is_over or delay else Now(),
        finished_at=Now() if is_over else None,
        updated_at=Now(),
    )
    if not won:
        return None
    if is_over:
        leases.start_sealer(fiber, status, reason)
        leases.release_lane(fiber.lane)
    elif not delay:
        dispatch_on_commit([fiber.pk], queue=queue_of(fiber.name))
    return status


def _judge(fiber: Fiber) -> tuple[Verdict, Incident]:
    """Judge a loss, by the fiber's own budget where its function declares one."""
    now: datetime = fiber.now  # type: ignore[attr-defined]  # annotated in _expired
    before = read_incident(fiber.incident)
    steps = FiberStep.objects.filter(fiber=fiber).count()
    loss = Loss(at=now, steps=steps, is_memory=fiber.reason == OUT_OF_MEMORY)
    debounce_seconds = fiber_settings.recovery_debounce_seconds
    incident = next_incident(before, loss, new_id=new_id("inc"), debounce_seconds=debounce_seconds)
    has_progressed = (
        fiber.progress > fiber.recovered_progress
        or FiberStep.objects.filter(fiber=fiber, attempt=fiber.attempt).exists()
    )
    is_new = before is not None and before.id != incident.id  # the last one was over: it does not count any more
    stalled: timedelta | None = None if is_new else fiber.stalled_for  # type: ignore[attr-defined]  # as above
    return _budget(fiber).judge(
        recoveries=0 if is_new else fiber.recoveries,
        has_progressed=has_progressed,
        stalled_seconds=stalled.total_seconds() if stalled is not None else 0.0,
        incident=incident,
    ), incident


def _budget(fiber: Fiber) -> RecoveryBudget:
    budget = settings_budget()
    entry = find_durable(fiber.name)
    return budget if entry is None or entry.budget is None else entry.budget(fiber.payload, budget)


def settings_budget() -> RecoveryBudget:
    """The recovery budget of fibers whose function declares none."""
    return RecoveryBudget(max_recoveries=fiber_settings.max_recoveries)


def _stalled_at(verdict: Verdict, incident: Incident) -> Any:
    if not verdict.is_stalled:
        return None
    return Now() if incident.losses == 1 else Coalesce("stalled_at", Now())


def _event(fiber: Fiber, verdict: Verdict) -> tuple[FiberEvent, str]:
    if fiber.cancel_requested_at is not None:
        return FiberEvent.CANCEL, fiber.reason or "cancelled"
    lying: timedelta = fiber.lying_for  # type: ignore[attr-defined]  # annotated in _expired
    window = resume_windows().get(fiber.name)
    if window is not None and lying.total_seconds() > window:
        return FiberEvent.SEAL, LAPSED
    if verdict.exhausted is not None:
        return FiberEvent.SEAL, verdict.exhausted.value
    entry = find_durable(fiber.name)
    if entry is not None and entry.interrupts_when_lost:
        return FiberEvent.SEAL, WORKER_LOST
    return FiberEvent.RECOVER, RECOVERED


def _lapsed() -> list[Fiber]:
    windows = resume_windows()
    return list(Fiber.objects.lapsed(windows).order_by("pk")[:BATCH]) if windows else []


def _expire_waits() -> None:
    """Let parked fibers go on whose first wait is over."""
    over = Fiber.objects.filter(status=FiberStatus.PARKED, parked_until__lt=Now()).order_by("parked_until")
    for fiber_id, waits in over.values_list("pk", "waits")[:BATCH]:
        ended = leases.first_end(waits)
        for wait in waits:
            if wait["until"] and datetime.fromisoformat(wait["until"]) == ended:
                services.expire_wait(fiber_id, wait["key"])


@transaction.atomic
def _seal_lapsed(fiber: Fiber) -> bool:
    status = advance(FiberStatus.PENDING, FiberEvent.SEAL)
    won = (
        Fiber.objects.filter(pk=fiber.pk, fence=fiber.fence)
        .lapsed(resume_windows())
        .update(status=status, reason=LAPSED, finished_at=Now(), updated_at=Now())
    )
    if won:
        leases.start_sealer(fiber, status, LAPSED)
        leases.release_lane(fiber.lane)
    return bool(won)


def _note_unknown(names: Collection[str]) -> None:
    """Say of what is due that no worker seems to have its function.

    It keeps its place, and the first worker that has the function claims it.
    """
    lying = Now() - timedelta(seconds=UNKNOWN_AFTER * _redispatch_seconds())
    others = Fiber.objects.filter(status=FiberStatus.PENDING, available_at__lt=lying).exclude(name__in=names)
    others = others.exclude(name__in=served_lately().values("name"))
    # A resumed one keeps its reason: the attempt that follows reads it.
    unnamed = others.exclude(reason__in=(UNKNOWN_DURABLE, METHOD_MISSING, RESUMED))
    for fiber_id, name in unnamed.order_by("available_at").values_list("pk", "name")[:BATCH]:
        reason = UNKNOWN_DURABLE if find_durable(name) is None else METHOD_MISSING
        unnamed.filter(pk=fiber_id).update(reason=reason)


def _dispatch_unclaimed(names: Collection[str], run: Callable[[Sequence[str]], None] | None = None) -> int:
    waiting = Fiber.objects.claimable(names).resumable(resume_windows()).undispatched(_redispatch_seconds())
    found = waiting.order_by("available_at", "pk").values_list("pk", "share", "name", "dispatched_at")[:LOOK]
    facts = {fiber_id: (name, at is None) for fiber_id, _, name, at in found}
    ids = _fair([(fiber_id, share) for fiber_id, share, _, _ in found])
    if not ids:
        return 0
    mark_dispatched(ids)
    here = [] if run is None else [key for key in ids if facts[key][1] and _is_member(facts[key][0])][:RUN_BATCH]
    if run is not None and here:
        run(here)
    by_queue: dict[str, list[str]] = {}
    for fiber_id in ids:
        if fiber_id not in here:
            by_queue.setdefault(queue_of(facts[fiber_id][0]), []).append(fiber_id)
    return len(here) + sum(dispatch_now(batch, queue=queue) for queue, batch in by_queue.items())


def _is_member(name: str) -> bool:
    entry = find_durable(name)
    return entry is not None and entry.members is not None


def _redispatch_seconds() -> float:
    return REDISPATCH_SWEEPS * fiber_settings.sweep_seconds


def _fair(found: list[tuple[str, str | None]]) -> list[str]:
    """Limit each share to its free slots, so that a full queue of one does not delay the others."""
    limit = fiber_settings.running_per_share
    counts: Counter[str] = Counter()
    ids: list[str] = []
    for fiber_id, share in found:
        if share is not None and limit > 0:
            counts[share] += 1
            if counts[share] > limit:
                continue
        ids.append(fiber_id)
    return ids[:BATCH]


def _prune() -> int:
    kept = fiber_settings.keep_finished_seconds, fiber_settings.keep_failed_seconds
    return sum(_prune_batch(statuses, seconds) for statuses, seconds in zip((FINISHED, GIVEN_UP), kept, strict=True))


def _prune_batch(statuses: tuple[FiberStatus, ...], seconds: float) -> int:
    old = Fiber.objects.finished_before(statuses, seconds)
    # Relations without a name of their own are hidden, and they protect just the same.
    for relation in Fiber._meta.get_fields(include_hidden=True):
        # What another app protects (a turn's fiber is its status) is that app's to delete.
        if isinstance(relation, models.ForeignObjectRel) and relation.on_delete is models.PROTECT:
            users = relation.related_model._default_manager.filter(**{relation.field.name: OuterRef("pk")})
            old = old.filter(~Exists(users))
    ids = list(old.order_by("finished_at").values_list("pk", flat=True)[:BATCH])
    if ids:
        Fiber.objects.filter(pk__in=ids, status__in=statuses).delete()
    return len(ids)
