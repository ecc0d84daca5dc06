"""What a durable function can do: steps, records, stash, fence."""

import asyncio
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fibers import context, selectors, services
from fibers.context import FiberContext
from fibers.errors import LeaseLost, OutsideFiber, StepMismatch
from fibers.models import Fiber
from fibers.registry import durable
from fibers.testing import claim_for_test, crash_after, run_until_idle
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)

ran: list[Any] = []


@durable("context.steps")
async def steps(ctx: FiberContext) -> Any:
    async def work(number: int) -> int:
        ran.append(number)
        return number * 10

    return [await ctx.step(f"s:{n}", lambda n=n: work(n)) for n in range(ctx.payload)]  # type: ignore[misc]  # mypy cannot infer a lambda with a default


@durable("context.stash")
async def stashing(ctx: FiberContext) -> Any:
    ran.append((ctx.fiber_id, ctx.stashed))
    await asyncio.sleep(0)
    await context.stash({"own": ctx.fiber_id})
    await ctx.record("stashed", None)
    return ctx.stashed


@pytest.fixture(autouse=True)
def _nothing_done_yet() -> None:
    ran.clear()


def claimed(payload: Any = None) -> FiberContext:
    ctx = claim_for_test(services.start_fiber("context.test", payload).pk)
    assert ctx is not None
    return ctx


async def test_recorded_steps_do_not_run_again() -> None:
    fiber = await db(services.start_fiber, "context.steps", 3)
    with crash_after("s:1"):
        await run_until_idle()
    row = await db(selectors.get_fiber, fiber.pk)
    assert (row.status, row.result, row.attempt) == ("completed", [0, 10, 20], 2)
    assert ran == [0, 1, 2]


async def test_the_journal_returns_records_and_asks_no_query_per_key() -> None:
    fiber = await db(services.start_fiber, "context.steps", 3)
    with crash_after("s:2"):
        await run_until_idle(recover=False)

    def replay() -> tuple[Any, int]:
        Fiber.objects.filter(pk=fiber.pk).update(status="pending")
        ctx = claim_for_test(fiber.pk)
        assert ctx is not None

        async def find() -> list[Any]:
            return [await ctx.recorded(f"s:{n}") for n in range(4)]

        with CaptureQueriesContext(connection) as queries:
            found = asyncio.run(find())
        return [record and record.value for record in found], len(queries)

    assert await db(replay) == ([0, 10, 20, None], 0)


def test_a_first_attempt_does_not_read_the_journal() -> None:
    with CaptureQueriesContext(connection) as queries:
        claimed()
    assert not [q for q in queries if "fiberstep" in q["sql"]]


async def test_a_key_is_recorded_once() -> None:
    ctx = await db(claimed)
    await ctx.record("a", 1)
    with pytest.raises(StepMismatch):
        await ctx.record("a", 2)
    assert [step.value for step in await db(selectors.history, ctx.fiber_id)] == [1]


async def test_two_steps_at_once_under_one_key_are_refused() -> None:
    ctx = await db(claimed)
    results = await asyncio.gather(ctx.record("a", 1), ctx.record("a", 2), return_exceptions=True)
    assert [type(result) for result in results if result is not None] == [StepMismatch]


async def test_a_replayed_value_equals_the_value_of_the_first_run() -> None:
    ctx = await db(claimed)

    async def pair() -> Any:
        return {"pair": (1, 2)}

    assert await ctx.step("a", pair) == {"pair": [1, 2]} == await ctx.step("a", pair)


async def test_a_stale_context_records_nothing() -> None:
    ctx = await db(claimed)
    await db(Fiber.objects.filter(pk=ctx.fiber_id).update, fence=ctx.fence + 1)
    with pytest.raises(LeaseLost):
        await ctx.record("a", 1)
    with pytest.raises(LeaseLost):
        await ctx.stash("x")
    assert await db(selectors.history, ctx.fiber_id) == []
    assert await ctx.recorded("a") is None


def test_a_record_and_what_is_written_with_it_commit_together() -> None:
    ctx = claimed()
    with ctx.fenced():
        Group.objects.create(name="kept")
        ctx.record_in("a", 1)
    with pytest.raises(ZeroDivisionError):
        write_and_fail(ctx)
    assert [group.name for group in Group.objects.all()] == ["kept"]
    assert [step.step_key for step in selectors.history(ctx.fiber_id)] == ["a"]
    with ctx.fenced():
        ctx.record_in("b", 2)  # what was rolled back is not in the journal


def write_and_fail(ctx: FiberContext) -> None:
    with ctx.fenced():
        Group.objects.create(name="undone")
        ctx.record_in("b", 1)
        raise ZeroDivisionError


def test_record_in_needs_the_fence() -> None:
    ctx, other = claimed(), claimed()
    with pytest.raises(OutsideFiber):
        ctx.record_in("a", 1)
    with other.fenced(), pytest.raises(OutsideFiber):
        ctx.record_in("a", 1)


async def test_records_and_shown_chunks_count_as_progress() -> None:
    ctx = await db(claimed)
    await ctx.record("a", 1)
    ctx.advance(3)
    await ctx.stash("x")
    assert (await db(selectors.get_fiber, ctx.fiber_id)).progress == 4


async def test_stash_outside_a_fiber_is_refused() -> None:
    with pytest.raises(OutsideFiber, match=r"stash\(\) called outside a fiber"):
        await context.stash(1)
    assert context.current_fiber() is None


async def test_two_concurrent_fibers_keep_separate_snapshots() -> None:
    ids = [(await db(services.start_fiber, "context.stash", None)).pk for _ in range(4)]
    with crash_after("stashed", times=4):
        await run_until_idle()
    rows = [await db(selectors.get_fiber, fiber_id) for fiber_id in ids]
    assert [row.stash for row in rows] == [{"own": fiber_id} for fiber_id in ids]
    assert [stash for _, stash in ran[:4]] == [None] * 4  # and the next attempt finds its own
    assert dict(ran[4:]) == {fiber_id: {"own": fiber_id} for fiber_id in ids}


@pytest.mark.parametrize("value", ["\x00 nul", "\ud800 lone", {"deep": ["\x00\udfff"]}])
async def test_any_text_survives_the_journal(value: Any) -> None:
    ctx = await db(claimed, value)
    await ctx.record("a", value)
    row = await db(selectors.get_fiber, ctx.fiber_id)
    assert row.payload == value
    assert (await db(selectors.history, ctx.fiber_id))[0].value == value


async def test_a_record_that_can_wait_goes_with_the_next_fenced_transaction() -> None:
    ctx = await db(claimed)
    ctx.record_soon("early", {"n": 1})
    assert await ctx.recorded("early") is not None
    assert await db(selectors.history, ctx.fiber_id) == []
    with pytest.raises(StepMismatch):
        ctx.record_soon("early", 2)
    with pytest.raises(ZeroDivisionError):
        await db(_fail_within, ctx)
    assert await db(selectors.history, ctx.fiber_id) == []  # taken back with its transaction, and not forgotten
    await ctx.record("late", 3)
    assert [(step.step_key, step.value) for step in await db(selectors.history, ctx.fiber_id)] == [
        ("early", {"n": 1}),
        ("late", 3),
    ]


def _fail_within(ctx: FiberContext) -> None:
    with ctx.fenced():
        raise ZeroDivisionError
