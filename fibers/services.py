"""Write operations for other apps. Sync, inside the caller's transaction; dispatches follow the commit."""

from collections.abc import Callable, Sequence
from typing import Any, Final, ParamSpec

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Now

from fibers.core.states import (
    HALTED,
    OUT_OF_MEMORY,
    RECOVERED,
    TERMINAL,
    WORKER_LOST,
    FiberEvent,
    FiberStatus,
    advance,
    sources,
)
from fibers.errors import FiberError
from fibers.models import Fiber, FiberQuerySet, FiberStep
from fibers.process.interrupts import notify_on_commit
from fibers.queue import leases
from fibers.queue.dispatch import dispatch_on_commit
from fibers.queue.enqueue import FiberSpec, end_of_lane, insert_fiber
from fibers.registry import queue_of
from fibers.waits import EXPIRED, RESUMED, WAIT_PREFIX, answered
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

MOVE_TRIES = 3

Choices = ParamSpec("Choices")


def _starting(choose: Callable[Choices, FiberSpec]) -> Callable[Choices, Fiber]:
    def start_fiber(*args: Choices.args, **kwargs: Choices.kwargs) -> Fiber:
        return insert_fiber(choose(*args, **kwargs))

    return start_fiber


start_fiber = _starting(FiberSpec)
"""Insert a pending fiber, as `FiberSpec` has it; workers are notified when the transaction commits.

`lane`, `share` and `scope` are opaque: of one lane one fiber runs at a time, in order; of one share a few, as the
setting says; those of one scope are found and stopped together. `behind`: the end of the lane where there is no room.

**Durability:** with a `key` or an id that exists, that fiber is returned and nothing is started.
**Errors:** `FiberError` for a blank key or lane; `FiberKeyTaken` when the key belongs to another function. Never raises
for a broker that is down.
"""


@transaction.atomic
def cancel_fiber(fiber_id: str, *, reason: str = "cancelled", only_at_rest: bool = False) -> bool:
    """Stop a fiber. False if it is unknown or has ended, or runs and is to be stopped `only_at_rest`.

    Pending and parked ones end at once. A running one is flagged and its worker signalled; it ends as cancelled,
    whatever its function still returns. Twice is once.
    """
    fiber = Fiber.objects.filter(pk=fiber_id)
    for _ in range(MOVE_TRIES):  # it may move between the statements, and back
        at_rest = fiber.filter(status__in=(FiberStatus.PENDING, FiberStatus.PARKED)).update(
            status=advance(FiberStatus.PENDING, FiberEvent.CANCEL),
            reason=reason[:64],
            cancel_requested_at=Now(),
            finished_at=Now(),
            updated_at=Now(),
        )
        if at_rest:
            row = fiber.get()
            leases.start_sealer(row, FiberStatus.CANCELLED, row.reason)
            leases.release_lane(row.lane)
            return True
        if only_at_rest:
            return False
        flagged = fiber.filter(status=FiberStatus.RUNNING).update(
            cancel_requested_at=Coalesce("cancel_requested_at", Now()), reason=reason[:64]
        )
        if flagged:
            notify_on_commit(fiber_id)
            return True
        if not fiber.filter(status__in=sources(FiberEvent.CANCEL)).exists():
            return False
    return False


@transaction.atomic
def cancel_pending(fibers: FiberQuerySet, *, reason: str) -> int:
    """Cancel those of these that wait for a worker; give how many. Those that run or are parked go on."""
    pending = list(fibers.filter(status=FiberStatus.PENDING).select_for_update().order_by("pk"))
    Fiber.objects.filter(pk__in=[row.pk for row in pending]).update(
        status=advance(FiberStatus.PENDING, FiberEvent.CANCEL),
        reason=reason[:64],
        cancel_requested_at=Now(),
        finished_at=Now(),
        updated_at=Now(),
    )
    for row in pending:
        leases.start_sealer(row, FiberStatus.CANCELLED, reason[:64])
    for lane in sorted({row.lane for row in pending if row.lane is not None}):
        leases.release_lane(lane)
    return len(pending)


@transaction.atomic
def reorder_pending(lane: str, fiber_ids: Sequence[str]) -> bool:
    """Put these fibers of a lane at its end in this order. False, and nothing is changed, where one is not pending.

    They are locked in the order of their ids.
    """
    if not all(hold_pending(fiber_id) for fiber_id in sorted(fiber_ids)):
        return False
    for fiber_id in fiber_ids:
        Fiber.objects.filter(pk=fiber_id).update(lane_position=end_of_lane(lane), updated_at=Now())
    leases.release_lane(lane)
    return True


def hold_pending(fiber_id: str) -> bool:
    """Lock a pending fiber's row until the surrounding transaction ends; false if it has begun or ended."""
    return (
        Fiber.objects.filter(pk=fiber_id, status=FiberStatus.PENDING, cancel_requested_at=None).update(fence=F("fence"))
        == 1
    )


def hold_fiber(fiber_id: str) -> bool:
    """Lock a fiber's row until the surrounding transaction ends; false if it has ended or is unknown.

    Runners lock their fiber before anything else. Who needs other rows of theirs as well takes the fiber first, too.
    """
    live = Fiber.objects.filter(pk=fiber_id).exclude(status__in=TERMINAL)
    return live.update(fence=F("fence")) == 1


@transaction.atomic
def resume_fiber(fiber_id: str) -> bool:
    """Wake a parked fiber. A running one that parks afterwards is woken immediately. False for any other status."""
    fiber = Fiber.objects.filter(pk=fiber_id)
    for _ in range(MOVE_TRIES):
        parked = fiber.filter(status=FiberStatus.PARKED).update(
            status=advance(FiberStatus.PARKED, FiberEvent.RESUME),
            reason=RESUMED,
            parked_until=None,
            available_at=Now(),
            dispatched_at=Now(),
            updated_at=Now(),
        )
        if parked:
            dispatch_on_commit([fiber_id])
            return True
        if fiber.filter(status=FiberStatus.RUNNING).update(resume_requested_at=Now()):
            return True
    return False


@transaction.atomic
def answer_wait(fiber_id: str, wait_key: str, value: JSONValue) -> bool:
    """Answer a fiber's wait. False if the wait or the fiber has ended.

    **Concurrency:** the first answer wins. One that comes while the function still runs is found when it has parked.
    **Durability:** with the commit the answer is delivered; the fiber goes on whenever a worker takes it.
    """
    return _end_wait(fiber_id, wait_key, answered(value))


def expire_wait(fiber_id: str, wait_key: str) -> bool:
    """End a wait whose time is over, unless an answer was first."""
    with transaction.atomic():
        return _end_wait(fiber_id, wait_key, EXPIRED)


def _end_wait(fiber_id: str, wait_key: str, record: JSONObject) -> bool:
    if not hold_fiber(fiber_id):
        return False
    fiber = Fiber.objects.only("attempt").get(pk=fiber_id)
    _step, is_first = FiberStep.objects.get_or_create(
        fiber_id=fiber_id, step_key=f"{WAIT_PREFIX}{wait_key}", defaults={"value": record, "attempt": fiber.attempt}
    )
    return is_first and resume_fiber(fiber_id)


def note_memory_loss(worker: str) -> int:
    """Note that a worker was killed because memory ran out, and how many fibers it took along.

    `worker`: its name, or the beginning of it. The sweep that finds their leases expired counts it against them.
    """
    lost = Fiber.objects.filter(worker__startswith=worker, status=FiberStatus.RUNNING)
    return lost.update(reason=OUT_OF_MEMORY)


@transaction.atomic
def requeue_fiber(fiber_id: str) -> bool:
    """Run a failed, interrupted or halted fiber again, over its journal, with fresh budgets. False for any other."""
    halted = Q(status__in=sources(FiberEvent.REOPEN), reason=HALTED)
    again = Fiber.objects.filter(halted | Q(status__in=sources(FiberEvent.REQUEUE)), pk=fiber_id)
    return _requeue(again, fiber_id, reason="requeued", retries=0, recoveries=0, incident=None, stalled_at=None)


@transaction.atomic
def restart_lost_fiber(fiber_id: str, *, is_retry: bool = False) -> bool:
    """Run a fiber again that was interrupted because its worker was lost. Its budgets go on. False for any other.

    `is_retry`: it counts as one of its retries.
    """
    lost = Fiber.objects.filter(pk=fiber_id, status=FiberStatus.INTERRUPTED, reason=WORKER_LOST)
    return _requeue(lost, fiber_id, reason=RECOVERED, retries=F("retries") + int(is_retry))


def _requeue(fibers: FiberQuerySet, fiber_id: str, **changes: Any) -> bool:
    moved = fibers.update(
        **changes,
        status=advance(FiberStatus.FAILED, FiberEvent.REQUEUE),
        error=None,
        cancel_requested_at=None,
        finished_at=None,
        available_at=Now(),
        dispatched_at=Now(),
        updated_at=Now(),
    )
    if moved:
        name = Fiber.objects.values_list("name", flat=True).get(pk=fiber_id)
        dispatch_on_commit([fiber_id], queue=queue_of(name))
    return bool(moved)


_RESOLUTIONS: Final = {
    FiberStatus.COMPLETED: FiberEvent.RESOLVE_COMPLETED,
    FiberStatus.FAILED: FiberEvent.RESOLVE_FAILED,
    FiberStatus.CANCELLED: FiberEvent.RESOLVE_CANCELLED,
}


@transaction.atomic
def resolve_fiber(
    fiber_id: str, status: FiberStatus, *, result: JSONValue = None, error: JSONValue = None, reason: str = "resolved"
) -> bool:
    """Say how an interrupted fiber has ended: completed, failed or cancelled. False for any other fiber.

    **Errors:** `FiberError` for another status.
    """
    if status not in _RESOLUTIONS:
        raise FiberError(f"a fiber is resolved as completed, failed or cancelled, not as {status.value}")
    event = _RESOLUTIONS[status]
    moved = Fiber.objects.filter(pk=fiber_id, status__in=sources(event)).update(
        status=advance(FiberStatus.INTERRUPTED, event),
        reason=reason[:64],
        result=result,
        error=error,
        finished_at=Now(),
        updated_at=Now(),
    )
    return bool(moved)


@transaction.atomic
def forget_scopes(scopes: Sequence[str], *, reason: str) -> None:
    """Stop all fibers of these scopes, and delete those that have ended; one that runs is kept until it has."""
    live = Fiber.objects.filter(scope__in=scopes, finished_at=None).exclude(status__in=TERMINAL)
    for fiber_id in live.order_by("pk").values_list("pk", flat=True):
        cancel_fiber(fiber_id, reason=reason)
    Fiber.objects.filter(scope__in=scopes, status__in=TERMINAL).delete()


@transaction.atomic
def stop_all_of_owner(owner_id: Any, *, reason: str) -> None:
    """Stop every fiber of a user who is deleted, in the transaction that deletes them."""
    live = Fiber.objects.filter(owner_id=owner_id, finished_at=None).exclude(status__in=TERMINAL)
    for fiber_id in list(live.order_by("pk").values_list("pk", flat=True)):
        cancel_fiber(fiber_id, reason=reason)
    Fiber.objects.filter(owner_id=owner_id).update(owner=None)


def delete_ended(fibers: FiberQuerySet, limit: int) -> int:
    """Delete the oldest of these that have ended, at most `limit`; return how many."""
    ended = fibers.filter(status__in=TERMINAL).order_by("created_at", "pk").values_list("pk", flat=True)
    ids = list(ended[:limit])
    if ids:
        Fiber.objects.filter(pk__in=ids, status__in=TERMINAL).delete()
    return len(ids)
