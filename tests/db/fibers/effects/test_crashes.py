"""A process that dies at any statement of a look, or at any point of a handler's fiber, fires each entry once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.crashing.points import Course, Point
from fibers.effects.declaring import create_effect
from fibers.effects.looking import look
from fibers.effects.registered import EffectEvent, RowEffect
from fibers.models import EffectEntry, EffectState, Fiber
from fibers.testing import SimulatedCrash, run_effects
from tests.budget import examples
from thinkproject.kernel.aio import db

from .conftest import add, pending

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _recovered_without_end(settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 100


async def handled(event: EffectEvent) -> None:
    """Writes what happened once, with a record; the group's name is unique, so a second time is an error."""
    if await event.fiber.recorded("handled") is None:
        await db(_write, event)


def _write(event: EffectEvent) -> None:
    with event.fiber.fenced():
        Group.objects.create(name=event.key)
        event.fiber.record_in("handled", None)


def declare() -> RowEffect:
    return create_effect("t.crash", pending, on_enter=handled, on_update=handled, on_exit=handled)


@contextmanager
def dying_at(number: int) -> Iterator[list[int]]:
    """Kill the process before its statement of this number, from 0, and count the statements."""
    count = [0]

    def execute(run: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if count[0] == number:
            raise SimulatedCrash
        count[0] += 1
        return run(sql, params, many, context)

    with connection.execute_wrapper(execute):
        yield count


CHANGES: dict[str, Callable[[], Any]] = {
    "enter": lambda: User.objects.bulk_create([User(username=f"u{n}", first_name="pending") for n in range(2)]),
    "update": lambda: User.objects.update(email="changed@example.org"),
    "exit": lambda: User.objects.update(first_name="done"),
}


async def test_a_look_that_dies_at_any_statement_fires_once_or_leaves_all_to_the_next() -> None:
    effect = declare()

    def die_everywhere(change: Callable[[], Any]) -> int:
        change()
        number = 0
        while True:  # each death leaves everything to the next look, up to the one that survives
            try:
                with dying_at(number) as count:
                    look(effect)
            except SimulatedCrash:
                number += 1
                continue
            assert count[0] == number
            return number

    for kind, change in CHANGES.items():
        assert await db(die_everywhere, change) >= 6
        await run_effects()
        names = [name async for name in Group.objects.values_list("name", flat=True)]
        assert len(names) == 2
        assert all(f":{kind}:" in name for name in names)
        await Group.objects.all().adelete()
    assert not await EffectEntry.objects.aexists()


async def test_a_save_whose_process_dies_before_its_hint_is_found_by_the_sweep() -> None:
    declare()

    def save() -> int:
        number = 0
        while True:
            with dying_at(number) as count:
                try:
                    add(f"u{number}")
                except SimulatedCrash:
                    number += 1
                    continue
                return count[0]

    assert await db(save) >= 6
    await run_effects()
    assert await Group.objects.acount() == await User.objects.acount() > 0


async def played(deaths: list[Point], *, batch: int = 0) -> Course:
    """Two rows that enter, change and leave, with these crashes on the way."""
    course = Course(deaths)
    with course.watched():
        for change in CHANGES.values():
            await db(change)
            await run_effects(skip_delays=True)
    return course


async def _clear() -> None:
    for model in (EffectState, Fiber, Group, User):
        await model._default_manager.all().adelete()


async def _outcome() -> list[str]:
    return sorted([name.split(":", 3)[3] async for name in Group.objects.values_list("name", flat=True)])


async def test_a_handler_that_dies_at_any_point_has_its_effect_once() -> None:
    declare()
    course = await played([])
    right = await _outcome()
    assert right == ["enter:0"] * 2 + ["exit:1"] * 2 + ["update:1"] * 2
    points = course.passed
    assert len(points) >= 20
    chosen = points if len(points) <= examples(50) else points[:: -(-len(points) // examples(50))]
    for point in chosen:
        await _clear()
        assert (await played([point])).died == [point]
        assert await _outcome() == right, str(point)


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(places=st.lists(st.integers(0, 10**6), min_size=2, max_size=6))
async def test_any_crashes_one_after_the_other_change_nothing(places: list[int]) -> None:
    effect = declare()
    try:
        await _clear()
        passed = (await played([])).passed
        right = await _outcome()
        await _clear()
        await played([passed[at] for at in sorted(place % len(passed) for place in places)])
        assert await _outcome() == right
    finally:
        await _clear()
        await effect.dispose()
