"""A worker claims what it has the function of. What none can run waits, with a reason, and goes on after a deploy."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from fibers import registry, selectors, services
from fibers.context import FiberContext
from fibers.core.states import FiberStatus
from fibers.execution.recovery import sweep
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from fibers.queue import leases
from fibers.registry import durable
from fibers.testing import expire_lease, run_until_idle
from fibers.waits import Wait
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)

members: set[str] = set()
ran: list[Any] = []
queued: set[str] = set()


@durable("able.family", members=lambda: members)
async def family(ctx: FiberContext) -> str:
    ran.append(ctx.name)
    return ctx.name


@pytest.fixture(autouse=True)
def _no_members() -> None:
    members.clear()
    queued.clear()
    ran.clear()


@contextmanager
def deployed(name: str = "able.new") -> Iterator[None]:
    """A deploy that has this function, for as long as the block."""

    @durable(name)
    async def function(ctx: FiberContext) -> Any:
        ran.append(ctx.fiber_id)
        return {"attempt": ctx.attempt, "retries": ctx.retries}

    try:
        yield
    finally:
        registry.forget(name)


def lie(fiber_id: str) -> None:
    """Let it have been due for as long as no worker took it."""
    Fiber.objects.filter(pk=fiber_id).update(available_at=F("available_at") - timedelta(minutes=1), dispatched_at=None)


async def row(fiber_id: str) -> Fiber:
    return await db(selectors.get_fiber, fiber_id)


async def test_a_name_that_no_worker_has_costs_nothing_and_continues_with_the_deploy_that_brings_it() -> None:
    fiber = await db(services.start_fiber, "able.new", 1)
    for _ in range(20):
        await run_fiber(fiber.pk)
    waiting = await row(fiber.pk)
    assert (waiting.status, waiting.attempt, waiting.fence, waiting.retries) == ("pending", 0, 0, 0)
    await db(lie, fiber.pk)
    await db(sweep)
    assert (await row(fiber.pk)).reason == "unknown_durable"
    with deployed():
        await run_until_idle()
    done = await row(fiber.pk)
    assert (done.status, done.reason, done.result) == ("completed", "", {"attempt": 1, "retries": 0})


async def test_only_a_worker_that_has_the_function_is_sent_it() -> None:
    fiber = await db(services.start_fiber, "able.new", 1)
    await db(lie, fiber.pk)
    assert (await db(sweep)).dispatched == 0
    assert await db(lambda: list(Fiber.objects.claimable(registry.known_names()))) == []
    with deployed():
        await db(sweep)
        assert (await row(fiber.pk)).dispatched_at is not None


@pytest.mark.parametrize("first", ["old", "new"])
def test_of_two_workers_of_a_rolling_deploy_the_one_with_the_function_takes_it(first: str) -> None:
    old, new = ["able.old"], ["able.old", "able.new"]
    fiber = services.start_fiber("able.new", 1)
    order = [old, new] if first == "old" else [new, old]
    won = [leases.claim(fiber.pk, f"w{number}", names=names) for number, names in enumerate(order)]
    assert [claim is not None for claim in won] == [names is new for names in order]


def test_what_the_old_worker_refused_is_sent_again_at_the_next_sweep() -> None:
    fiber = services.start_fiber("able.new", 1)
    assert leases.claim(fiber.pk, "old", names=["able.old"]) is None
    assert selectors.get_fiber(fiber.pk).dispatched_at is None


async def test_a_deploy_that_loses_the_function_of_a_killed_worker_keeps_the_fiber_for_the_next() -> None:
    with deployed():
        fiber = await db(services.start_fiber, "able.new", 1)
        assert await db(leases.claim, fiber.pk, "killed") is not None
    await db(expire_lease, fiber.pk)
    await run_until_idle()  # the sweep of a worker without the function
    assert (await row(fiber.pk)).status == "pending"
    with deployed():
        await run_until_idle()
    assert (await row(fiber.pk)).result == {"attempt": 2, "retries": 0}


async def test_a_fiber_of_a_lane_that_nobody_can_run_keeps_its_place_before_those_behind_it() -> None:
    members.add("known")
    first = await db(lambda: services.start_fiber("able.new", 1, lane="a"))
    second = await db(lambda: services.start_fiber("able.family:known", 1, lane="a"))
    await run_until_idle()
    assert ran == []
    with deployed():
        await run_until_idle()
    assert ran == [first.pk, "able.family:known"]
    assert (await row(second.pk)).status == "completed"


async def test_a_member_that_a_family_does_not_have_says_that_the_method_is_missing() -> None:
    fiber = await db(services.start_fiber, "able.family:gone", None)
    await db(lie, fiber.pk)
    await run_until_idle()
    waiting = await row(fiber.pk)
    assert (waiting.status, waiting.reason, waiting.attempt) == ("pending", "method_missing", 0)
    members.add("gone")
    await run_until_idle()
    assert (await row(fiber.pk)).status == "completed"


def test_the_name_of_a_family_alone_is_no_function() -> None:
    members.add("known")
    assert registry.find_durable("able.family") is None
    assert registry.find_durable("able.family:known") is not None
    assert "able.family:known" in registry.known_names()
    assert "able.family" not in registry.known_names()


async def test_an_answer_that_comes_before_the_deploy_is_still_there_after_it() -> None:
    async def waits(ctx: FiberContext) -> Any:
        ended = await ctx.wait(Wait(key="q", kind="question"))
        return ended.answer

    durable("able.waits")(waits)
    fiber = await db(services.start_fiber, "able.waits", None)
    await run_until_idle()
    registry.forget("able.waits")
    assert await db(services.answer_wait, fiber.pk, "q", 42)
    await db(lie, fiber.pk)
    await run_until_idle()
    assert (await row(fiber.pk)).reason == "resumed"
    durable("able.waits")(waits)
    await run_until_idle()
    registry.forget("able.waits")
    done = await row(fiber.pk)
    assert (done.status, done.result) == ("completed", 42)


async def test_a_fiber_that_nobody_can_run_can_be_cancelled() -> None:
    fiber = await db(services.start_fiber, "able.new", 1)
    assert await db(services.cancel_fiber, fiber.pk)
    assert (await row(fiber.pk)).status == FiberStatus.CANCELLED


@durable("able.queued", members=lambda: queued, queue=lambda name: f"of-{name.partition(':')[2]}")
async def queued_family(ctx: FiberContext) -> str:
    return ctx.name


async def test_a_worker_takes_the_fibers_of_its_queues_alone() -> None:
    queued.update({"lab", "desk"})
    assert registry.own_queues() >= {"of-lab", "of-desk"}
    fibers = [await db(services.start_fiber, f"able.queued:{name}", None) for name in ("lab", "desk")]
    fibers.append(await db(services.start_fiber, "able.queued:gone", None))
    other = await db(lambda: services.start_fiber("able.waits-not", None))
    registry.serve_queues({"of-lab"})
    try:
        await run_until_idle()
    finally:
        registry.serve_queues(None)
    assert [(await row(fiber.pk)).status for fiber in fibers] == ["completed", "pending", "pending"]
    assert (await row(other.pk)).status == "pending"
    await run_until_idle()
    assert [(await row(fiber.pk)).status for fiber in fibers] == ["completed", "completed", "pending"]


async def test_a_member_whose_message_was_spent_in_vain_runs_where_a_sweep_finds_it() -> None:
    fiber = await db(services.start_fiber, "able.queued:late", None)
    assert await db(lambda: leases.claim(fiber.pk, "without", names=["able.family"])) is None
    found: list[str] = []
    await db(lambda: sweep(run=found.extend))
    assert found == []  # nor has this process its member
    queued.add("late")
    counts = await db(lambda: sweep(run=found.extend))
    assert (found, counts.dispatched) == ([fiber.pk], 1)
    await db(lambda: sweep(run=found.extend))
    assert found == [fiber.pk]  # not again at once
