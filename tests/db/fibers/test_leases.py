"""Claim, renew, fence, settle: what one conditional UPDATE decides."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from fibers import services
from fibers.core.states import FiberEvent, FiberStatus
from fibers.errors import IllegalMove, LeaseLost
from fibers.models import Fiber, FiberStep
from fibers.queue import leases
from fibers.queue.leases import Held, Settlement
from fibers.testing import expire_lease

pytestmark = pytest.mark.django_db


def start(lane: str | None = None, **changes: object) -> Fiber:
    fiber = services.start_fiber("lease.test", {}, lane=lane)
    if changes:
        Fiber.objects.filter(pk=fiber.pk).update(**changes)
    return fiber


def claim(fiber: Fiber, worker: str = "w1") -> leases.Claim:
    won = leases.claim(fiber.pk, worker)
    assert won is not None
    return won


def finish(fiber: Fiber, event: FiberEvent = FiberEvent.COMPLETE) -> FiberStatus:
    fence = Fiber.objects.get(pk=fiber.pk).fence
    return leases.settle(fiber.pk, fence, Settlement(event=event, progress=0))


def test_a_claim_advances_fence_and_attempt_and_sets_the_lease() -> None:
    row = claim(start()).fiber
    assert (row.status, row.fence, row.attempt, row.worker) == ("running", 1, 1, "w1")
    assert row.lease_until is not None
    assert row.started_at is not None
    assert row.lease_until - row.started_at == timedelta(seconds=10)


def test_a_second_claim_loses() -> None:
    fiber = start()
    claim(fiber)
    assert leases.claim(fiber.pk, "w2") is None
    assert Fiber.objects.get(pk=fiber.pk).worker == "w1"


def test_a_claim_is_one_update() -> None:
    fiber = start(lane="a")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        claim(fiber)
    writes = [q["sql"] for q in queries if q["sql"].startswith(("UPDATE", "INSERT", "DELETE"))]
    assert len(writes) == 1
    assert not [q for q in queries if q["sql"].startswith("SELECT")]


@pytest.mark.parametrize("status", [status for status in FiberStatus if status is not FiberStatus.PENDING])
def test_only_a_pending_fiber_is_claimed(status: FiberStatus) -> None:
    assert leases.claim(start(status=status).pk, "w1") is None


def test_a_fiber_that_is_not_due_is_not_claimed() -> None:
    assert leases.claim(start(available_at=Now() + timedelta(seconds=5)).pk, "w1") is None
    assert leases.claim(start(available_at=Now() - timedelta(seconds=5)).pk, "w1") is not None


def test_a_fiber_with_a_requested_cancel_is_not_claimed() -> None:
    assert leases.claim(start(cancel_requested_at=Now()).pk, "w1") is None


def test_a_lane_runs_one_at_a_time_in_order() -> None:
    first, second, third = start("a"), start("a"), start("a")
    assert leases.claim(second.pk, "w1") is None  # an earlier one is pending
    claim(first)
    assert leases.claim(second.pk, "w1") is None  # one is running
    assert leases.next_claimable(first.pk) is None
    finish(first)
    assert leases.claim(third.pk, "w1") is None
    assert leases.next_claimable(first.pk) == second.pk
    claim(second)


def test_a_parked_fiber_keeps_its_place_in_the_lane() -> None:
    first, second = start("a"), start("a")
    claim(first)
    finish(first, FiberEvent.PARK)
    assert leases.claim(second.pk, "w1") is None
    assert services.cancel_fiber(first.pk)
    claim(second)


def test_a_delayed_fiber_keeps_its_place_in_the_lane() -> None:
    start("a", available_at=Now() + timedelta(hours=1))
    assert leases.claim(start("a").pk, "w1") is None


def test_lanes_do_not_hinder_each_other() -> None:
    claim(start("a"))
    claim(start("b"))
    claim(start())
    claim(start())


def test_renewing_is_one_update_for_all_fibers_of_the_process() -> None:
    fibers = [claim(start(lane=f"lane{n}")).fiber for n in range(20)]
    Fiber.objects.update(lease_until=Now() - timedelta(seconds=1))
    with CaptureQueriesContext(connection) as queries:
        beat = leases.renew("w1", {row.pk: Held(fence=1, progress=3) for row in fibers})
    assert beat == leases.RenewalResult(lost=frozenset(), cancelled=frozenset())
    assert len([q for q in queries if q["sql"].startswith("UPDATE")]) == 1
    assert not Fiber.objects.expired().exists()
    assert set(Fiber.objects.values_list("progress", flat=True)) == {3}


def test_renewing_reports_a_lost_lease_and_leaves_the_new_owner_alone() -> None:
    fiber = start()
    claim(fiber, "w1")
    Fiber.objects.filter(pk=fiber.pk).update(fence=2, worker="w2", lease_until=Now() - timedelta(seconds=1))
    assert leases.renew("w1", {fiber.pk: Held(fence=1, progress=9)}).lost == {fiber.pk}
    row = Fiber.objects.expired().get(pk=fiber.pk)
    assert (row.progress, row.worker) == (0, "w2")


def test_renewing_reports_a_lease_that_this_process_won_anew_as_lost() -> None:
    fiber = start()
    claim(fiber)
    Fiber.objects.filter(pk=fiber.pk).update(fence=2)
    assert leases.renew("w1", {fiber.pk: Held(fence=1, progress=0)}).lost == {fiber.pk}


def test_renewing_reads_requested_cancels() -> None:
    fiber, other = start(), start()
    claim(fiber)
    claim(other)
    services.cancel_fiber(fiber.pk)
    beat = leases.renew("w1", {row.pk: Held(fence=1, progress=0) for row in (fiber, other)})
    assert beat == leases.RenewalResult(lost=frozenset(), cancelled=frozenset({fiber.pk}))


def test_a_stale_fence_writes_nothing() -> None:
    fiber = start()
    claim(fiber)
    Fiber.objects.filter(pk=fiber.pk).update(fence=2)
    with pytest.raises(LeaseLost), leases.fenced(fiber.pk, 1):
        FiberStep.objects.create(fiber_id=fiber.pk, step_key="x", value=1, attempt=1)
    with pytest.raises(LeaseLost):
        leases.settle(fiber.pk, 1, Settlement(event=FiberEvent.COMPLETE, progress=0, result="stale"))
    row = Fiber.objects.get(pk=fiber.pk)
    assert (row.status, row.result, row.steps.count()) == ("running", None, 0)


def test_a_fence_of_a_fiber_that_ended_writes_nothing() -> None:
    fiber = start()
    claim(fiber)
    finish(fiber)
    with pytest.raises(LeaseLost), leases.fenced(fiber.pk, 1):
        pytest.fail("the block was entered")


def test_the_fence_is_checked_by_the_first_statement() -> None:
    fiber = start()
    claim(fiber)
    with CaptureQueriesContext(connection) as queries, leases.fenced(fiber.pk, 1, progress=4):
        pass
    statements = [q["sql"] for q in queries if not q["sql"].startswith(("SAVEPOINT", "BEGIN", "RELEASE"))]
    assert len(statements) == 1
    assert statements[0].startswith("UPDATE")


def test_a_fenced_write_prolongs_the_lease_and_never_lowers_progress() -> None:
    fiber = start()
    claim(fiber)
    expire_lease(fiber.pk)
    for progress in (4, 2):
        with leases.fenced(fiber.pk, 1, progress=progress):
            pass
    assert not Fiber.objects.expired().exists()
    assert Fiber.objects.get(pk=fiber.pk).progress == 4


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (FiberEvent.COMPLETE, "completed"),
        (FiberEvent.FAIL, "failed"),
        (FiberEvent.PARK, "parked"),
        (FiberEvent.HAND_BACK, "pending"),
    ],
)
def test_settling_gives_the_lease_up(event: FiberEvent, status: str) -> None:
    fiber = start()
    claim(fiber)
    assert finish(fiber, event) == status
    row = Fiber.objects.get(pk=fiber.pk)
    assert (row.status, row.worker, row.lease_until) == (status, "", None)
    assert (row.finished_at is not None) == (status in {"completed", "failed"})


@pytest.mark.parametrize("event", [FiberEvent.COMPLETE, FiberEvent.FAIL, FiberEvent.PARK, FiberEvent.HAND_BACK])
def test_a_requested_cancel_wins_over_every_other_ending(event: FiberEvent) -> None:
    fiber = start()
    claim(fiber)
    assert services.cancel_fiber(fiber.pk, reason="user")
    leases.settle(fiber.pk, 1, Settlement(event=event, progress=0, result="late"))
    row = Fiber.objects.get(pk=fiber.pk)
    assert (row.status, row.reason, row.result) == ("cancelled", "user", None)


def test_a_claim_is_not_a_way_to_settle() -> None:
    fiber = start()
    claim(fiber)
    with pytest.raises(IllegalMove):
        leases.settle(fiber.pk, 1, Settlement(event=FiberEvent.CLAIM, progress=0))
