"""Real threads against one database: who wins, and that only one does."""

import asyncio
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest
from django.db import connection, transaction

from fibers import selectors, services
from fibers.context import FiberContext
from fibers.core.states import FiberEvent
from fibers.errors import LeaseLost
from fibers.execution.recovery import sweep
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from fibers.queue import leases
from fibers.queue.leases import Settlement
from fibers.registry import durable
from fibers.testing import expire_lease

pytestmark = pytest.mark.django_db(transaction=True)

R = TypeVar("R")
ran: list[tuple[str, int]] = []


@durable("race.count")
async def count(ctx: FiberContext) -> None:
    ran.append((ctx.fiber_id, ctx.attempt))
    await asyncio.sleep(0.001)


def together(threads: int, function: Callable[[int], R]) -> list[R]:
    """Call the function in that many threads at the same moment, each with a connection of its own."""
    barrier = threading.Barrier(threads)

    def run(number: int) -> R:
        try:
            barrier.wait(timeout=10)
            return function(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


@pytest.mark.parametrize("lane", [None, "a"])
def test_of_many_claims_one_wins(lane: str | None) -> None:
    for _ in range(5):
        fiber = services.start_fiber("race.test", 1, lane=lane)

        def race(number: int, fiber: Fiber = fiber) -> leases.Claim | None:
            return leases.claim(fiber.pk, f"w{number}")

        claims = [claim for claim in together(6, race) if claim]
        assert len(claims) == 1
        row = selectors.get_fiber(fiber.pk)
        assert (row.worker, row.fence, row.attempt) == (claims[0].fiber.worker, 1, 1)
        leases.settle(fiber.pk, 1, Settlement(event=FiberEvent.COMPLETE, progress=0))


def test_two_claims_in_one_lane_are_settled_by_the_constraint() -> None:
    """The condition of both holds: neither sees the other's uncommitted claim (PostgreSQL)."""
    first, second = (services.start_fiber("race.test", n, lane="a") for n in range(2))
    Fiber.objects.filter(pk=first.pk).update(status="failed")
    claimed = threading.Event()
    results: dict[int, Any] = {}

    def race(number: int) -> None:
        if number == 0:
            with transaction.atomic():
                results[0] = leases.claim(second.pk, "w0")
                claimed.set()
                threading.Event().wait(0.4)  # the other one decides while this one is not committed
        else:
            claimed.wait(10)
            services.requeue_fiber(first.pk)
            results[1] = leases.claim(first.pk, "w1")

    together(2, race)
    assert results[0] is not None
    assert results[1] is None
    assert list(Fiber.objects.filter(status="running").values_list("pk", flat=True)) == [second.pk]
    assert selectors.get_fiber(first.pk).status == "pending"


@pytest.mark.long
def test_duplicate_deliveries_to_many_workers_run_each_fiber_once() -> None:
    ran.clear()
    ids = [services.start_fiber("race.count", n, lane=f"lane{n % 7}" if n % 2 else None).pk for n in range(60)]

    def work(number: int) -> None:
        deliveries = random.Random(number).sample(ids, len(ids))

        async def run_all() -> None:
            for fiber_id in deliveries:
                await run_fiber(fiber_id)

        asyncio.run(run_all())

    together(4, work)
    assert sorted(ran) == sorted((fiber_id, 1) for fiber_id in ids)
    assert set(Fiber.objects.values_list("status", flat=True)) == {"completed"}


def test_positions_given_at_the_same_moment_differ() -> None:
    together(6, lambda n: [services.start_fiber("race.test", n, lane="a") for _ in range(3)])
    positions = sorted(Fiber.objects.values_list("lane_position", flat=True))
    assert positions == list(range(10, 190, 10))


def test_one_key_at_the_same_moment_is_one_fiber() -> None:
    for key in ("k1", "k2", "k3"):
        ids = together(6, lambda n, key=key: services.start_fiber("race.test", n, key=key).pk)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        assert len(set(ids)) == 1
    assert Fiber.objects.count() == 3


def test_cancel_and_claim_at_the_same_moment_never_lose_the_cancel() -> None:
    for _ in range(8):
        fiber = services.start_fiber("race.test", 1)

        def race(number: int, fiber: Fiber = fiber) -> Any:
            return services.cancel_fiber(fiber.pk) if number == 0 else leases.claim(fiber.pk, "w1")

        accepted, claim = together(2, race)
        row = selectors.get_fiber(fiber.pk)
        assert accepted is True
        assert row.cancel_requested_at is not None
        assert row.status == ("cancelled" if claim is None else "running")


def test_sweeps_at_the_same_moment_recover_once() -> None:
    for _ in range(4):
        fiber = services.start_fiber("race.test", 1)
        leases.claim(fiber.pk, "w1")
        expire_lease(fiber.pk)
        assert sum(counts.recovered for counts in together(4, lambda n: sweep())) == 1
        assert selectors.get_fiber(fiber.pk).recoveries == 1


def test_settling_and_recovering_at_the_same_moment_have_one_winner() -> None:
    for _ in range(8):
        fiber = services.start_fiber("race.test", 1)
        leases.claim(fiber.pk, "w1")
        expire_lease(fiber.pk)

        def race(number: int, fiber: Fiber = fiber) -> Any:
            if number == 0:
                return sweep().recovered
            try:
                return leases.settle(fiber.pk, 1, Settlement(event=FiberEvent.COMPLETE, progress=0))
            except LeaseLost:
                return None

        recovered, settled = together(2, race)
        assert (recovered, settled) in {(1, None), (0, "completed")}
        assert selectors.get_fiber(fiber.pk).status == ("pending" if recovered else "completed")


def test_a_slow_fenced_write_does_not_hold_up_the_other_leases() -> None:
    """PostgreSQL: the batched renewal skips the locked row, whose own write prolongs it."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    slow, other = (services.start_fiber("race.test", n) for n in range(2))
    for fiber in (slow, other):
        leases.claim(fiber.pk, "w1")
        expire_lease(fiber.pk)
    inside, renewed = threading.Event(), threading.Event()

    def race(number: int) -> Any:
        if number == 0:
            with leases.fenced(slow.pk, 1):
                inside.set()
                return renewed.wait(15)
        inside.wait(15)
        beat = leases.renew("w1", {fiber.pk: leases.Held(fence=1, progress=0) for fiber in (slow, other)})
        renewed.set()
        return beat

    assert together(2, race) == [True, leases.RenewalResult(lost=frozenset(), cancelled=frozenset())]
    assert not Fiber.objects.expired().exists()
