"""The sweep: recovering, giving up, sending again, pruning."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from fibers import selectors, services
from fibers.context import FiberContext
from fibers.core.states import FiberEvent, FiberStatus
from fibers.errors import LeaseLost
from fibers.execution import recovery, worker
from fibers.execution.recovery import SweepCounts, sweep
from fibers.models import Fiber, FiberStep
from fibers.queue import leases
from fibers.queue.leases import Settlement
from fibers.registry import durable
from fibers.testing import claim_for_test, expire_lease

pytestmark = pytest.mark.django_db


@durable("recovery.windowed", sealed="recovery.sealer", resume_seconds=900)
async def windowed(ctx: FiberContext) -> None: ...


@durable("recovery.sealer")
async def sealer(ctx: FiberContext) -> None: ...


def lose(fiber: Fiber, *, progress: int = 0, seconds: float = 1) -> FiberContext:
    """Claim the fiber and let its worker die."""
    Fiber.objects.filter(pk=fiber.pk).update(available_at=Now())
    ctx = claim_for_test(fiber.pk)
    assert ctx is not None
    Fiber.objects.filter(pk=fiber.pk).update(lease_until=Now() - timedelta(seconds=seconds), progress=progress)
    return ctx


def start(name: str = "recovery.test", **options: Any) -> Fiber:
    return services.start_fiber(name, {"n": 1}, **options)


def status(fiber: Fiber) -> tuple[str, str]:
    row = selectors.get_fiber(fiber.pk)
    return row.status, row.reason


def test_a_running_fiber_is_never_recovered() -> None:
    claim_for_test(start().pk)
    assert sweep().recovered == 0


def test_an_expired_lease_is_recovered_and_its_owner_fenced_out() -> None:
    fiber = start()
    ctx = lose(fiber)
    assert sweep().recovered == 1
    assert status(fiber) == ("pending", "recovered")
    with pytest.raises(LeaseLost), ctx.fenced():
        pytest.fail("a worker that lost its lease wrote")
    assert leases.claim(fiber.pk, "w2") is not None


def test_two_sweeps_recover_once() -> None:
    fiber = start()
    lose(fiber)
    found = recovery._expired()
    assert [recovery._recover(row) for row in found] == [FiberStatus.PENDING]
    assert [recovery._recover(row) for row in found] == [None]
    assert selectors.get_fiber(fiber.pk).recoveries == 1


def test_a_worker_that_beats_again_keeps_its_fiber() -> None:
    fiber = start()
    lose(fiber)
    found = recovery._expired()
    leases.renew("test", {fiber.pk: leases.Held(fence=1, progress=0)})
    assert [recovery._recover(row) for row in found] == [None]
    assert status(fiber) == ("running", "")


def test_several_are_recovered_oldest_first() -> None:
    fibers = [start() for _ in range(3)]
    for age, fiber in zip((5, 30, 10), fibers, strict=True):
        lose(fiber, seconds=age)
    assert [row.pk for row in recovery._expired()] == [fibers[1].pk, fibers[2].pk, fibers[0].pk]


def test_two_lost_leases_with_one_recovery_allowed_give_it_up(settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 1
    fiber = start()
    lose(fiber)
    sweep()
    lose(fiber)
    assert sweep() == SweepCounts(ended=1)
    assert status(fiber) == ("interrupted", "recovery_attempts_exhausted")
    row = selectors.get_fiber(fiber.pk)
    assert row.error["code"] == "recovery_attempts_exhausted"
    assert row.finished_at is not None


def test_progress_resets_the_budget(settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 1
    fiber = start()
    for progress in (0, 1, 1, 2, 2):
        lose(fiber, progress=progress)
        assert sweep().recovered == 1
    lose(fiber, progress=2)
    assert sweep().ended == 1


def test_a_step_that_no_heartbeat_reported_is_progress_too(settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 0
    fiber = start()
    ctx = lose(fiber)
    FiberStep.objects.create(fiber=fiber, step_key="a", value=1, attempt=ctx.attempt)
    assert sweep().recovered == 1
    lose(fiber)
    assert sweep().ended == 1  # the step of the attempt before does not count again


def test_five_minutes_of_recovering_without_progress_seal_it() -> None:
    fiber = start()
    lose(fiber)
    sweep()
    Fiber.objects.filter(pk=fiber.pk).update(stalled_at=Now() - timedelta(seconds=301))
    lose(fiber)
    sweep()
    assert status(fiber) == ("interrupted", "no_progress_timeout")


def test_an_hour_without_any_worker_does_not_count() -> None:
    fiber = start()
    lose(fiber, seconds=3600)
    assert sweep().recovered == 1


def test_what_keeps_losing_its_worker_waits_longer_each_time() -> None:
    fiber, delays = start(), []
    for _ in range(5):
        lose(fiber)
        sweep()
        row = selectors.get_fiber(fiber.pk)
        delays.append(round((row.available_at - row.updated_at).total_seconds(), 1))
    assert delays == [0, 1.5, 3, 3.8, 3.8]  # the lease comes on top of each


def test_a_lost_fiber_with_a_requested_cancel_ends_as_cancelled() -> None:
    fiber = start("recovery.windowed")
    lose(fiber)
    services.cancel_fiber(fiber.pk, reason="user")
    assert sweep().ended == 1
    assert status(fiber) == ("cancelled", "user")
    assert Fiber.objects.get(name="recovery.sealer").payload["status"] == "cancelled"


def test_a_fiber_not_resumed_in_time_is_sealed_and_its_sealer_starts() -> None:
    fiber = start("recovery.windowed")
    lose(fiber, seconds=901)
    assert sweep().ended == 1
    assert status(fiber) == ("interrupted", "not_resumed_in_time")
    sent = Fiber.objects.get(name="recovery.sealer").payload
    assert (sent["fiber_id"], sent["reason"], sent["payload"]) == (fiber.pk, "not_resumed_in_time", {"n": 1})


def test_what_was_handed_back_too_long_ago_is_neither_claimed_nor_kept() -> None:
    fiber = start("recovery.windowed")
    claim_for_test(fiber.pk)
    leases.settle(fiber.pk, 1, Settlement(event=FiberEvent.HAND_BACK, progress=0, reason="shutdown"))
    assert sweep().ended == 0
    Fiber.objects.filter(pk=fiber.pk).update(updated_at=Now() - timedelta(seconds=901))
    assert leases.claim(fiber.pk, "w2") is None
    assert sweep().ended == 1
    assert status(fiber) == ("interrupted", "not_resumed_in_time")


def test_what_never_started_is_run_however_long_it_lay() -> None:
    fiber = start("recovery.windowed")
    Fiber.objects.filter(pk=fiber.pk).update(updated_at=Now() - timedelta(days=1))
    assert sweep().ended == 0
    assert leases.claim(fiber.pk, "w1") is not None


def test_a_handed_back_fiber_spends_no_recovery() -> None:
    fiber = start()
    for fence in range(1, 30):
        assert claim_for_test(fiber.pk)
        leases.settle(fiber.pk, fence, Settlement(event=FiberEvent.HAND_BACK, progress=0))
    row = selectors.get_fiber(fiber.pk)
    assert (row.status, row.recoveries, row.retries) == ("pending", 0, 0)


def test_an_idle_sweep_writes_nothing() -> None:
    fiber = start()
    claim_for_test(fiber.pk)
    with CaptureQueriesContext(connection) as queries:
        assert sweep() == SweepCounts()
    assert not [q["sql"] for q in queries if not q["sql"].startswith("SELECT")]


def finished(status: FiberStatus, hours: float) -> Fiber:
    fiber = start()
    FiberStep.objects.create(fiber=fiber, step_key="a", value=1, attempt=1)
    Fiber.objects.filter(pk=fiber.pk).update(status=status, finished_at=Now() - timedelta(hours=hours))
    return fiber


def test_completed_rows_vanish_after_a_day_and_failed_after_a_week() -> None:
    kept = [
        finished(FiberStatus.COMPLETED, 23),
        finished(FiberStatus.CANCELLED, 23),
        finished(FiberStatus.FAILED, 24 * 7 - 1),
        finished(FiberStatus.INTERRUPTED, 25),
    ]
    for status_, hours in (("completed", 25), ("cancelled", 25), ("failed", 24 * 7 + 1), ("interrupted", 24 * 7 + 1)):
        finished(FiberStatus(status_), hours)
    assert sweep(prune=False).pruned == 0
    assert sweep().pruned == 4
    assert set(Fiber.objects.values_list("pk", flat=True)) == {fiber.pk for fiber in kept}
    assert FiberStep.objects.count() == 4


def test_live_fibers_are_never_pruned(settings: Any) -> None:
    settings.THINK_FIBER_KEEP_FINISHED_SECONDS = settings.THINK_FIBER_KEEP_FAILED_SECONDS = 0
    for state in ("pending", "running", "parked"):
        fiber = start()
        Fiber.objects.filter(pk=fiber.pk).update(status=state, finished_at=None, lease_until=Now() + timedelta(hours=1))
    assert sweep().pruned == 0


def test_the_owner_of_a_fiber_may_go() -> None:
    owner = User.objects.create_user("alice")
    fiber = start(owner_id=owner.pk)
    owner.delete()
    assert selectors.get_fiber(fiber.pk).owner is None


def test_an_expired_lease_that_was_not_swept_cannot_be_claimed() -> None:
    fiber = start()
    lose(fiber)
    expire_lease(fiber.pk)
    assert leases.claim(fiber.pk, "w2") is None


# --- incidents -----------------------------------------------------------------------------------------------------


@durable("recovery.frugal", budget=lambda payload, budget: replace(budget, max_recoveries=payload["n"], max_work=2))
async def frugal(ctx: FiberContext) -> None: ...


def pass_time(fiber: Fiber, seconds: float) -> None:
    """Move what is known of a fiber's losses into the past."""
    row = Fiber.objects.get(pk=fiber.pk)
    for name in ("since", "lost_at", "counted_at"):
        row.incident[name] = (datetime.fromisoformat(row.incident[name]) - timedelta(seconds=seconds)).isoformat()
    if row.stalled_at is not None:
        row.stalled_at -= timedelta(seconds=seconds)
    row.save(update_fields=["incident", "stalled_at"])


def lose_again(fiber: Fiber, **options: Any) -> tuple[str, str]:
    lose(fiber, **options)
    sweep()
    return status(fiber)


def test_losses_within_half_a_minute_count_as_one_and_later_ones_are_exhausted_at_the_third(settings: Any) -> None:
    settings.THINK_FIBER_RECOVERY_DEBOUNCE_SECONDS = 30.0
    settings.THINK_FIBER_MAX_RECOVERIES = 2
    fiber = start()
    assert [lose_again(fiber)[0] for _ in range(5)] == ["pending"] * 5
    row = selectors.get_fiber(fiber.pk)
    assert (row.recoveries, row.incident["losses"]) == (1, 5)
    assert row.available_at > row.updated_at  # what keeps losing its worker waits, counted or not
    for expected in (("pending", "recovered"), ("interrupted", "recovery_attempts_exhausted")):
        pass_time(fiber, 40)
        assert lose_again(fiber) == expected


def test_progress_resets_the_attempts_and_not_the_incident() -> None:
    fiber = start()
    lose_again(fiber)
    lose_again(fiber)
    first = selectors.get_fiber(fiber.pk)
    lose_again(fiber, progress=5)
    row = selectors.get_fiber(fiber.pk)
    assert (first.recoveries, row.recoveries) == (2, 0)
    assert (row.incident["id"], row.incident["losses"]) == (first.incident["id"], 3)


def test_after_an_hour_a_loss_is_another_incident() -> None:
    fiber = start()
    lose_again(fiber)
    lose_again(fiber)
    first = selectors.get_fiber(fiber.pk).incident
    pass_time(fiber, 4000)
    assert lose_again(fiber) == ("pending", "recovered")  # the no-progress window began anew as well
    row = selectors.get_fiber(fiber.pk)
    assert (row.recoveries, row.incident["losses"]) == (1, 1)
    assert row.incident["id"] != first["id"]


def test_a_function_may_have_a_budget_of_its_own() -> None:
    fiber = start("recovery.frugal")
    assert [lose_again(fiber) for _ in range(2)] == [
        ("pending", "recovered"),
        ("interrupted", "recovery_attempts_exhausted"),
    ]


def test_work_of_a_fiber_that_always_loses_its_worker_is_bounded() -> None:
    fiber = start("recovery.frugal")
    lose_again(fiber)
    for number in range(3):
        FiberStep.objects.create(fiber=fiber, step_key=f"s{number}", attempt=2, value={})
    assert lose_again(fiber, progress=99) == ("interrupted", "recovery_work_exhausted")


def test_workers_that_ran_out_of_memory_are_counted_apart() -> None:
    fiber = start()
    outcomes = []
    for number in range(4):
        ctx = lose(fiber, progress=number + 1)  # there is progress each time
        assert services.note_memory_loss(ctx.worker) == 1
        sweep()
        outcomes.append(status(fiber))
    assert outcomes == [("pending", "recovered")] * 3 + [("interrupted", "out_of_memory")]


def test_a_fiber_that_is_run_again_by_hand_has_no_incident() -> None:
    fiber = start("recovery.frugal")
    lose_again(fiber)
    lose_again(fiber)
    services.requeue_fiber(fiber.pk)
    assert selectors.get_fiber(fiber.pk).incident is None


def test_a_new_worker_counts_the_loss_of_the_killed_one_before_it(settings: Any) -> None:
    settings.THINK_FIBER_KILLED_WORKER = "host:12"
    mine, other = start(), start()
    claim_for_test(mine.pk, "host:12:ab")
    claim_for_test(other.pk, "host:123:ab")
    worker._note_killed_worker()
    expire_lease(mine.pk)
    expire_lease(other.pk)
    sweep()
    assert [selectors.get_fiber(fiber.pk).incident["memory_losses"] for fiber in (mine, other)] == [1, 0]
