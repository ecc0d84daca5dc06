"""Laws of fibers: crashed anywhere they end as if they had not been, and no sequence of events leaves the table."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fibers import selectors, services
from fibers.context import FiberContext
from fibers.core.journal import Journal, normalised
from fibers.core.states import MOVES, TERMINAL, FiberEvent, FiberStatus, advance
from fibers.errors import IllegalMove
from fibers.models import Fiber
from fibers.registry import durable
from fibers.testing import die, run_until_idle
from tests.budget import examples
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import dump, load

RESOLUTIONS = {FiberEvent.RESOLVE_COMPLETED, FiberEvent.RESOLVE_FAILED, FiberEvent.RESOLVE_CANCELLED}

plan: list[tuple[int, str]] = []
"""Where the worker dies: step number, and before, in or after its record."""

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(autouse=True)
def _many_recoveries(settings: Any) -> None:
    settings.THINK_FIBER_DISPATCH = "manual"
    settings.THINK_FIBER_MAX_RECOVERIES = 100


def crash(ctx: FiberContext, step: int, point: str) -> None:
    if plan and plan[0] == (step, point):
        plan.pop(0)
        die(ctx)


@durable("law.work")
async def work(ctx: FiberContext) -> Any:
    """Each step writes a row of its own (the keyed effect) together with its record, and builds on the one before."""
    total: list[Any] = []
    for number, value in enumerate(ctx.payload):
        key = f"s:{number}"
        known = await ctx.recorded(key)
        if known is None:
            known_value = await db(effect, ctx, number, key, [value, len(total)])
        else:
            known_value = known.value
        total.append(known_value)
    await db(crash, ctx, len(ctx.payload), "end")
    return total


def effect(ctx: FiberContext, number: int, key: str, value: Any) -> Any:
    crash(ctx, number, "before")
    with ctx.fenced():
        Group.objects.create(name=f"{ctx.fiber_id} {key}")  # unique: a second time is an error
        ctx.record_in(key, value)
        crash(ctx, number, "inside")
    crash(ctx, number, "after")
    return normalised(value)


@pytest.mark.django_db(transaction=True)
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(JSON, max_size=4),
    crashes=st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["before", "inside", "after", "end"])), max_size=4),
)
async def test_a_fiber_crashed_anywhere_ends_as_the_uncrashed_one(
    values: list[Any], crashes: list[tuple[int, str]]
) -> None:
    plan[:] = crashes
    fiber = await db(services.start_fiber, "law.work", values)
    await run_until_idle(skip_delays=True)
    row = await db(selectors.get_fiber, fiber.pk)
    expected = normalised([[value, index] for index, value in enumerate(values)])
    assert (row.status, row.result) == ("completed", expected)
    assert await db(lambda: Group.objects.filter(name__startswith=fiber.pk).count()) == len(values)
    assert [step.value for step in await db(selectors.history, fiber.pk)] == expected
    assert row.attempt == 1 + len(crashes) - len(plan)
    await db(Fiber.objects.all().delete)


@given(events=st.lists(st.sampled_from(FiberEvent), max_size=30))
def test_from_pending_any_sequence_of_events_stays_within_the_table(events: list[FiberEvent]) -> None:
    status = FiberStatus.PENDING
    for event in events:
        try:
            after = advance(status, event)
        except IllegalMove:
            assert (status, event) not in MOVES
            continue
        if status in TERMINAL:
            assert event in {FiberEvent.REQUEUE, FiberEvent.REOPEN, *RESOLUTIONS}
        status = after


@given(entries=st.dictionaries(st.text(min_size=1, max_size=5), JSON, max_size=6))
def test_a_journal_reads_back_what_was_recorded(entries: dict[str, Any]) -> None:
    journal = Journal()
    for key, value in entries.items():
        journal.check_new(key)
        journal.add(key, normalised(value))
    again = Journal((key, load(dump(value))) for key, value in entries.items())
    for key in entries:
        assert journal.find(key) == again.find(key)
