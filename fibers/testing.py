"""Run fibers without Celery, and crash them on purpose. For tests of this project and of agents built on it.

    start_fiber("mail.send", {...})
    await run_until_idle()

Time is the database's clock: nothing is frozen. What would have to be waited for is moved into the past instead.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import NoReturn

from django.db.models import Max
from django.db.models.functions import Now

from fibers import context as contexts
from fibers.context import FiberContext
from fibers.core.schedules.states import ScheduleStatus
from fibers.core.states import TERMINAL, FiberStatus
from fibers.effects.looking import look
from fibers.effects.registered import effects
from fibers.execution import recovery
from fibers.execution.own_worker import first_claimable, running
from fibers.execution.runner import run_fiber
from fibers.models import Fiber, Schedule, ScheduleRun
from fibers.queue import leases
from fibers.schedules.firing import fire_due
from thinkproject.kernel.aio import db

__all__ = ["SimulatedCrash", "crash_after", "run_effects", "run_schedules", "run_until_idle", "worker"]

ROUNDS = 1000
_crashed: list[tuple[str, int]] = []


class SimulatedCrash(BaseException):
    """The worker dies here: nothing is settled, no further write of this attempt counts."""


async def run_until_idle(*, timeout_seconds: float = 30.0, skip_delays: bool = False, recover: bool = True) -> int:
    """Run every claimable fiber on this loop until none is left; return how many rounds it took.

    **Shape:** with `skip_delays`, fibers that wait for a later instant (a retry, a delay) run now. With `recover`,
    what a simulated crash left behind is recovered first, as the sweeper of a worker would.
    **Errors:** `TimeoutError` after `timeout_seconds`.
    """
    async with asyncio.timeout(timeout_seconds):
        for done in range(ROUNDS):
            ids = await db(_next, skip_delays, recover)
            if not ids:
                return done
            await asyncio.gather(*(run_fiber(fiber_id) for fiber_id in ids))
    raise AssertionError(f"fibers kept coming for {ROUNDS} rounds")


async def run_schedules() -> int:
    """Let every active schedule be due now, once, and run what it starts; return how many began.

    Returns once each of them has ended, or waits for something, a `worker` that runs beside it included.
    **Errors:** `TimeoutError` after 30 s.
    """
    count, known = await db(_fire_schedules)
    async with asyncio.timeout(30.0):
        await run_until_idle()
        while await db(_are_under_way, known):  # noqa: ASYNC110 - a worker beside this runs them; rows publish nothing
            await asyncio.sleep(0.02)
    return count


async def run_effects(*, skip_delays: bool = False) -> int:
    """Let every effect look at its whole queryset, as a sweep does in its turn, and run what that starts.

    Returns how many events there were. What handlers themselves cause is run, too. Errors: `TimeoutError` after 30 s.
    """
    found = 0
    for _ in range(ROUNDS):
        events = sum([await db(look, effect) for effect in effects()])
        if not events and not await run_until_idle(skip_delays=skip_delays):
            return found
        found += events
        await run_until_idle(skip_delays=skip_delays)
    raise AssertionError(f"effects kept firing for {ROUNDS} rounds")


def _fire_schedules() -> tuple[int, int]:
    """Return how many began, and the last run that there was before."""
    known = ScheduleRun.objects.aggregate(last=Max("pk"))["last"] or 0
    Schedule.objects.filter(status=ScheduleStatus.ACTIVE, next_at__gt=Now()).update(next_at=Now())
    return fire_due(), known


def _are_under_way(known: int) -> bool:
    return ScheduleRun.objects.filter(pk__gt=known, fiber__status=FiberStatus.RUNNING).exists()


@asynccontextmanager
async def worker(*, look_seconds: float = 0.05) -> AsyncIterator[None]:
    """Run fibers in the background of this loop until the end of the block, side by side as a real worker would.

    What simulated crashes leave behind is recovered, as by another worker.
    """
    async with running(_look, look_seconds):
        yield


def _look() -> list[str]:
    if has_crashed():
        recover_crashed()
    return _due(skip_delays=True)


@contextmanager
def crash_after(step_key: str, *, times: int = 1) -> Iterator[None]:
    """Kill the worker of the fiber right after the record of this step has been committed, the first `times` times.

    The lease is left behind as a dead worker leaves it; `run_until_idle` lets it expire, so that no test waits for it.
    """
    left = times

    def probe(context: FiberContext, key: str) -> None:
        nonlocal left
        if key == step_key and left > 0:
            left -= 1
            die(context)

    contexts.recorded_probes.append(probe)
    try:
        yield
    finally:
        contexts.recorded_probes.remove(probe)


def die(context: FiberContext) -> NoReturn:
    """Simulate that the process that runs this fiber dies now. Anywhere, also inside a transaction. Never returns."""
    _crashed.append((context.fiber_id, context.fence))
    context.fence = -1  # what `finally` blocks of the function still try to write is refused, as by a dead process
    raise SimulatedCrash


def expire_lease(fiber_id: str, fence: int | None = None) -> None:
    """Let a running fiber look as if its worker had stopped beating."""
    running = Fiber.objects.filter(pk=fiber_id, status=FiberStatus.RUNNING)
    if fence is not None:
        running = running.filter(fence=fence)
    running.update(lease_until=Now() - timedelta(seconds=1))


def make_due() -> None:
    """Let every pending fiber be due now."""
    Fiber.objects.filter(status=FiberStatus.PENDING, available_at__gt=Now()).update(available_at=Now())


def claim_for_test(fiber_id: str, worker: str = "test") -> FiberContext | None:
    """Claim a fiber without running it; return its context, or None when it cannot be claimed."""
    claim = leases.claim(fiber_id, worker)
    return None if claim is None else FiberContext(claim)


def has_crashed() -> bool:
    """Whether a simulated crash has left a fiber behind that was not recovered yet."""
    return bool(_crashed)


def recover_crashed() -> None:
    """Recover what simulated crashes have left behind, as the sweeper of a worker does once a lease has run out."""
    while _crashed:
        expire_lease(*_crashed.pop())
    recovery.sweep(prune=False)


def is_anything_open() -> bool:
    """Whether a fiber has not ended or a schedule is active: else there is nothing to run, and nothing for a sweep."""
    schedules = Schedule.objects.filter(status=ScheduleStatus.ACTIVE)
    return Fiber.objects.exclude(status__in=TERMINAL).exists() or schedules.exists()


def _next(skip_delays: bool, recover: bool) -> list[str]:
    if not is_anything_open():
        return []
    ids = _due(skip_delays)
    if not ids and recover:
        recover_crashed()
        ids = _due(skip_delays)
    return ids


def _due(skip_delays: bool) -> list[str]:
    if skip_delays:
        make_due()
    return _claimable()


def _claimable() -> list[str]:
    return first_claimable(Fiber.objects.all())
