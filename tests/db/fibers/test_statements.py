"""The statements that are written by hand do what the ORM's querysets say."""

import random
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from fibers.conf import fiber_settings
from fibers.core.states import FiberEvent, FiberStatus
from fibers.models import Fiber
from fibers.queue import leases
from fibers.queue.enqueue import LANE_GAP, FiberSpec, insert_fiber
from fibers.registry import durable, forget, resume_windows

pytestmark = pytest.mark.django_db(transaction=True)

MADE = ("id", "created_at", "updated_at", "available_at", "dispatched_at")


@pytest.fixture
def windowed() -> Any:
    @durable("statements.windowed", resume_seconds=60.0)
    async def function(_context: Any) -> None:
        return None

    yield "statements.windowed"
    forget("statements.windowed")


def a_crowd(seed: int, windowed: str) -> list[Fiber]:
    """Fibers of a few lanes and shares in all states, as the constraints allow."""
    pick = random.Random(seed)
    made = [Fiber.objects.create(name="statements.plain", payload={}, available_at=Now() - timedelta(seconds=1))]
    running: set[str] = set()
    for number in range(40):
        lane = pick.choice([None, "a", "b", "c"])
        status = pick.choice(list(FiberStatus))
        if status is FiberStatus.RUNNING and lane in running:
            status = FiberStatus.PENDING
        if status is FiberStatus.RUNNING and lane is not None:
            running.add(lane)
        is_over = status not in {FiberStatus.PENDING, FiberStatus.PARKED, FiberStatus.RUNNING}
        ago = timedelta(seconds=pick.choice([-3600, 1, 30, 3600]))
        made.append(
            Fiber.objects.create(
                name=pick.choice(["statements.plain", windowed]),
                payload={},
                lane=lane,
                lane_position=number * LANE_GAP,
                share=pick.choice([None, "user:1", "user:2"]),
                status=status,
                attempt=pick.choice([0, 1]),
                available_at=Now() - ago,
                updated_at=Now() - timedelta(seconds=pick.choice([1, 120])),
                cancel_requested_at=pick.choice([None, None, None, Now()]),
                finished_at=Now() if is_over else None,
            )
        )
    return made


@pytest.mark.parametrize("limit", [0, 1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_claim_takes_what_the_queryset_says(seed: int, limit: int, windowed: str, settings: Any) -> None:
    settings.THINK_RUNNING_TURNS_PER_USER = limit
    assert fiber_settings.running_per_share == limit
    crowd = a_crowd(seed, windowed)
    wanted = set(Fiber.objects.claimable().resumable(resume_windows()).values_list("pk", flat=True))
    taken = set()
    for fiber in crowd:
        with transaction.atomic():  # taken back, so that each is asked for alone
            if leases.claim(fiber.pk, "w") is not None:
                taken.add(fiber.pk)
            transaction.set_rollback(True)
    assert taken == wanted
    assert 0 < len(wanted) < len(crowd)
    for lane in ("a", "b", "c"):
        following = Fiber.objects.live_in(lane).claimable().values_list("pk", flat=True).first()
        assert leases.next_in_lane(lane) == following


def test_a_claim_returns_the_row_as_it_stands() -> None:
    fiber = insert_fiber(FiberSpec(name="statements.plain", payload={"a": [1, None]}, metadata={"b": "ü"}, lane="x"))
    claim = leases.claim(fiber.pk, "w1")
    assert claim is not None
    stored = Fiber.objects.get(pk=fiber.pk)
    assert vars_of(claim.fiber) == vars_of(stored)
    assert (stored.worker, stored.fence, stored.attempt, stored.status) == ("w1", 1, 1, "running")


def test_an_insert_leaves_what_the_models_defaults_are() -> None:
    user = User.objects.create_user("ann")
    given: dict[str, Any] = {"name": "statements.plain", "payload": {"x": 1}, "owner_id": user.pk, "max_retries": 2}
    inserted = insert_fiber(FiberSpec(**given, metadata={"m": 1}, lane="lane", share="s", key="k"))
    assert vars_of(inserted) == vars_of(Fiber.objects.get(pk=inserted.pk))
    created = Fiber.objects.create(**given, metadata={"m": 1}, lane="lane", share="s", lane_position=99)
    created.refresh_from_db()
    ours, theirs = vars_of(inserted), vars_of(created)
    differ = {name for name in ours if ours[name] != theirs[name]}
    assert differ <= {*MADE, "lane_position", "key"}
    assert inserted.dispatched_at is not None
    assert inserted.lane_position == LANE_GAP


@pytest.mark.parametrize(("delay", "is_sent"), [(0.0, True), (5.0, False), (3600.0, False)])
def test_a_delay_is_kept_by_the_databases_clock(delay: float, is_sent: bool) -> None:
    fiber = insert_fiber(FiberSpec(name="statements.plain", payload=None, delay_seconds=delay))
    assert (fiber.dispatched_at is not None) == is_sent
    assert abs((fiber.available_at - fiber.created_at).total_seconds() - delay) < 0.01
    assert (leases.claim(fiber.pk, "w") is not None) == (delay == 0.0)


def test_the_end_of_a_lane_is_behind_fibers_that_were_squeezed_in() -> None:
    first = insert_fiber(FiberSpec(name="statements.plain", payload=None, lane="y"))
    between = insert_fiber(FiberSpec(name="statements.plain", payload=None, lane="y", behind=first.lane_position))
    last = insert_fiber(FiberSpec(name="statements.plain", payload=None, lane="y"))
    assert [each.lane_position for each in (first, between, last)] == [LANE_GAP, LANE_GAP + 1, 2 * LANE_GAP]


@pytest.mark.parametrize("cancelled", [False, True])
def test_completing_is_settling(cancelled: bool) -> None:
    rows = []
    for way in ("completing", "settle"):
        fiber = insert_fiber(FiberSpec(name="statements.plain", payload=None))
        claim = leases.claim(fiber.pk, "w")
        assert claim is not None
        if cancelled:
            Fiber.objects.filter(pk=fiber.pk).update(cancel_requested_at=Now(), reason="stopped")
        if way == "completing":
            with leases.completing(fiber.pk, 1, 7, {"r": 1}) as is_completed:
                assert is_completed is not cancelled
        if way == "settle" or cancelled:
            leases.settle(fiber.pk, 1, leases.Settlement(event=FiberEvent.COMPLETE, progress=7, result={"r": 1}))
        rows.append(vars_of(Fiber.objects.get(pk=fiber.pk)))
    moments = {"started_at", "finished_at", "cancel_requested_at", *MADE}
    ours, theirs = ({name: value for name, value in row.items() if name not in moments} for row in rows)
    assert ours == theirs
    assert ours["status"] == ("cancelled" if cancelled else "completed")


def vars_of(row: Fiber) -> dict[str, Any]:
    """The columns of a row."""
    return {field.attname: getattr(row, field.attname) for field in Fiber._meta.concrete_fields}
