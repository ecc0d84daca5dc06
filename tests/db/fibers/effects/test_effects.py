"""Rows that enter, change in and leave a queryset: each fires once, by whatever it is found."""

import asyncio
import threading
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.db.models import QuerySet

from fibers.effects.declaring import create_effect
from fibers.effects.looking import look, look_due
from fibers.effects.registered import EffectEvent
from fibers.errors import EffectInvalid
from fibers.execution.recovery import sweep
from fibers.models import EffectEntry, EffectState, Fiber
from fibers.testing import run_effects, run_until_idle
from tests.db.races import together
from tests.db.statements import statements
from thinkproject.kernel.aio import db

from .conftest import Seen, add, pending

pytestmark = pytest.mark.django_db(transaction=True)


def nothing(_event: Any) -> None:
    """A handler."""


async def test_a_row_fires_for_each_time_it_enters_changes_and_leaves(seen: Seen) -> None:
    create_effect("t.all", pending, on_enter=seen, on_update=seen, on_exit=seen)
    ann = await db(add, "ann")
    await db(add, "bob", "done")
    await run_until_idle()  # the hint of the commit alone
    assert seen.take() == [("enter", "ann", "pending")]
    ann.last_name = "Lee"
    await ann.asave()
    await run_until_idle()
    assert seen.take() == [("update", "ann", "pending")]
    ann.first_name = "done"
    await ann.asave()
    await run_until_idle()
    assert seen.take() == [("exit", "ann", "done")]
    ann.first_name = "pending"
    await ann.asave()
    await run_until_idle()
    assert seen.take() == [("enter", "ann", "pending")]
    pk = str(ann.pk)
    await ann.adelete()
    await run_until_idle()
    assert seen.take() == [("exit", pk, "gone")]
    assert len(seen.keys) == len(set(seen.keys)) == 5
    assert not await EffectEntry.objects.aexists()


async def test_rows_that_no_signal_tells_of_are_found_by_the_sweep(seen: Seen) -> None:
    create_effect("t.sweep", pending, on_enter=seen, on_exit=seen)
    for name in ("ann", "bob", "cem"):
        await db(add, name, "done")
    await User.objects.filter(username="ann").aupdate(first_name="pending")
    await db(by_hand, "UPDATE auth_user SET first_name = 'pending' WHERE username = 'bob'")
    assert (await db(sweep)).fired == 2
    assert (await db(sweep)).fired == 0  # its turn comes every fifteen seconds
    await run_until_idle()
    assert seen.take() == [("enter", "ann", "pending"), ("enter", "bob", "pending")]
    await db(by_hand, "UPDATE auth_user SET first_name = 'done'")
    await run_effects()
    assert seen.take() == [("exit", "ann", "done"), ("exit", "bob", "done")]


def by_hand(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


async def test_changes_of_one_transaction_are_one_event_from_the_first_to_the_last() -> None:
    events: list[EffectEvent] = []
    create_effect(
        "t.merged", User.objects.all, on_update=events.append, fingerprint=lambda user: {"status": user.first_name}
    )
    await db(add, "ann", "first")

    @transaction.atomic
    def twice() -> None:
        for status in ("second", "third"):
            ann = User.objects.get()
            ann.first_name, ann.email = status, f"{status}@example.org"
            ann.save()

    await db(twice)
    await User.objects.aupdate(last_name="of no interest")
    await run_effects()
    assert [(event.previous, event.row.first_name) for event in events] == [({"status": "first"}, "third")]


async def test_what_is_rolled_back_fires_nothing(seen: Seen) -> None:
    create_effect("t.rolled", pending, on_enter=seen)

    def failing() -> None:
        with transaction.atomic():
            add("ann")
            raise ValueError

    with pytest.raises(ValueError):
        await db(failing)
    await db(add, "bob", "done")  # the next commit of this thread looks at the other's row as well
    assert await run_effects() == 0
    assert seen.take() == []
    assert not await Fiber.objects.aexists()


def test_found_by_many_at_once_a_row_fires_once(seen: Seen) -> None:
    effect = create_effect("t.race", pending, on_enter=seen, on_exit=seen)
    User.objects.bulk_create([User(username=f"u{number}", first_name="pending") for number in range(20)])
    first = str(User.objects.values_list("pk", flat=True)[0])
    assert not together(*[lambda: look(effect)] * 6, *[lambda: look(effect, [first])] * 2)
    assert Fiber.objects.count() == EffectEntry.objects.count() == 20
    asyncio.run(run_until_idle())
    assert seen.take() == sorted(("enter", f"u{number}", "pending") for number in range(20))
    User.objects.update(first_name="done")
    assert not together(*[lambda: look(effect)] * 6)
    asyncio.run(run_until_idle())
    assert len(seen.take()) == 20


async def test_what_was_there_first_can_be_skipped_and_what_came_since_is_not(seen: Seen) -> None:
    await db(add, "old")
    create_effect("t.skip", pending, on_enter=seen, on_exit=seen, skip_initial=True)
    await db(add, "new")  # its hint is the first look of all
    await run_effects()
    assert seen.take() == [("enter", "new", "pending")]
    await User.objects.aupdate(first_name="done")
    await run_effects()
    assert seen.take() == [("exit", "new", "done"), ("exit", "old", "done")]


async def test_events_come_in_batches() -> None:
    sizes: list[tuple[str, int]] = []

    def count(events: list[EffectEvent]) -> None:
        sizes.append((events[0].kind.value, len(events)))

    create_effect("t.batch", pending, on_enter=count, on_exit=count, batch=50)
    await User.objects.abulk_create([User(username=f"u{number}", first_name="pending") for number in range(120)])
    await run_effects()
    assert sorted(sizes) == [("enter", 20), ("enter", 50), ("enter", 50)]
    sizes.clear()
    await User.objects.all().adelete()
    await run_effects()
    assert sorted(sizes) == [("exit", 20), ("exit", 50), ("exit", 50)]


async def test_of_a_window_one_row_pushes_out_another(seen: Seen) -> None:
    def latest() -> QuerySet[User]:
        return User.objects.order_by("-username")[:2]

    create_effect("t.window", latest, on_enter=seen, on_exit=seen)
    for name in ("ann", "bob"):
        await db(add, name)
    await run_until_idle()
    seen.take()
    await db(add, "cem")
    await run_until_idle()
    assert seen.take() == [("enter", "cem", "pending"), ("exit", "ann", "pending")]


def test_the_cost_of_a_look_does_not_depend_on_the_rows(seen: Seen) -> None:
    effect = create_effect("t.cost", pending, on_enter=seen, on_update=seen, on_exit=seen)

    def look_after(change: Any) -> int:
        change()
        with statements() as found:
            look(effect)
        return len(found)

    def enter(count: int) -> None:
        known = User.objects.count()
        User.objects.bulk_create([User(username=f"u{known + number}", first_name="pending") for number in range(count)])

    look(effect)
    assert look_after(lambda: None) == 3  # the effect's row, the rows, the entries
    few, many = look_after(lambda: enter(1)), look_after(lambda: enter(200))
    assert many <= few + 200 // 20 <= 24  # SQLite takes so many values in one statement, and no more
    users = User.objects.all()
    few = look_after(lambda: users.filter(username="u0").update(email="a@example.org"))
    many = look_after(lambda: users.update(email="b@example.org"))
    assert many <= few + 200 // 20 <= 24
    assert look_after(lambda: users.update(first_name="done")) <= 24
    with statements() as alone:
        add("one", "done")
    with statements() as joined, transaction.atomic():
        for number in range(50):
            add(f"t{number}", "done")
    hint = len(alone) - sum("INSERT INTO" in each and "auth_user" in each for each in alone)
    inserts = sum("INSERT INTO" in each and "auth_user" in each for each in joined)
    assert len(joined) - inserts <= hint + 2  # BEGIN and COMMIT
    with statements() as idle:
        look_due()
        idle.clear()
        look_due()
    assert len(idle) == 1


async def test_who_saves_a_row_of_many_effects_leaves_the_looking_to_a_worker(seen: Seen) -> None:
    for number in range(25):
        create_effect(f"t.many{number}", pending, on_enter=seen)
    await run_effects()
    with statements() as found:
        await db(add, "ann")
    assert len(found) <= 6
    fired = [(await db(sweep)).fired for _ in range(25)]  # each takes half a second at most, and one chunk at least
    assert sum(fired) == 25
    await run_until_idle()
    assert seen.take() == [("enter", "ann", "pending")] * 25


async def test_a_handler_that_fails_is_tried_again_with_the_same_key(seen: Seen) -> None:
    keys: list[str] = []

    def fails_twice(event: EffectEvent) -> None:
        keys.append(event.key)
        if len(keys) < 3:
            raise ValueError("not now")

    create_effect("t.fails", pending, on_enter=fails_twice)
    await db(add, "ann")
    await run_until_idle(skip_delays=True)
    assert (len(keys), len(set(keys))) == (3, 1)
    assert (await Fiber.objects.aget()).status == "completed"


async def test_a_queryset_that_fails_is_noted_and_the_others_go_on(seen: Seen) -> None:
    broken = [False]

    def rows() -> QuerySet[User]:
        if broken[0]:
            raise LookupError("no such shop")
        return pending()

    create_effect("t.broken", rows, on_enter=seen)
    create_effect("t.sound", pending, on_enter=seen)
    broken[0] = True
    await db(add, "ann")
    assert (await db(sweep)).fired == 0  # the hint has found it for the one that is sound
    await run_until_idle()
    assert seen.take() == [("enter", "ann", "pending")]
    assert (await EffectState.objects.aget(name="t.broken")).error == "LookupError: no such shop"
    broken[0] = False
    await EffectState.objects.aupdate(due_at="2020-01-01T00:00:00Z")
    assert (await db(sweep)).fired == 1
    assert (await EffectState.objects.aget(name="t.broken")).error == ""


async def test_dispose_takes_nothing_more_and_waits_for_what_runs() -> None:
    entered, go, done = threading.Event(), threading.Event(), []

    def slow(event: EffectEvent) -> None:
        entered.set()
        assert go.wait(20)
        done.append(event.object_pk)

    effect = create_effect("t.dispose", pending, on_enter=slow)
    await db(add, "ann")
    running = asyncio.create_task(run_until_idle())
    await asyncio.to_thread(entered.wait, 20)
    disposing = [asyncio.create_task(effect.dispose()) for _ in range(2)]
    await asyncio.sleep(0)  # in which both begin
    await db(add, "bob")  # nothing watches
    assert not any(task.done() for task in disposing)
    go.set()
    await asyncio.gather(running, *disposing)
    await effect.dispose()
    assert len(done) == 1
    assert await run_effects() == 0
    again = create_effect("t.dispose", pending, on_enter=slow)  # another process, or the next deploy
    assert await run_effects() == 1
    assert len(done) == 2
    await again.dispose()


async def test_a_row_that_left_before_its_turn_is_passed_over_and_one_that_its_handler_moved_is_not(seen: Seen) -> None:
    async def claims(event: EffectEvent) -> None:
        await User.objects.filter(pk=event.row.pk).aupdate(first_name="executing")
        await seen(event)
        if len(seen.events) == 1:
            raise ValueError("cut after its first statement")

    create_effect("t.moves", pending, on_enter=claims)
    await db(add, "ann")
    bob = await db(add, "bob")
    await User.objects.filter(pk=bob.pk).aupdate(first_name="cancelled")
    await run_until_idle(skip_delays=True)
    assert seen.take() == [("enter", "ann", "executing"), ("enter", "ann", "pending")]
    assert await User.objects.filter(username="bob", first_name="cancelled").aexists()


@pytest.mark.parametrize("name", ["", " ", "a:b", "x" * 101])
def test_a_name_that_cannot_be_stored_is_refused(name: str) -> None:
    with pytest.raises(EffectInvalid, match="is no name"):
        create_effect(name, pending, on_enter=nothing)


def test_an_effect_without_a_handler_or_with_a_taken_name_is_refused() -> None:
    with pytest.raises(EffectInvalid, match="does nothing"):
        create_effect("t.none", pending)
    create_effect("t.taken", pending, on_enter=nothing)
    with pytest.raises(EffectInvalid, match="already"):
        create_effect("t.taken", Group.objects.all, on_enter=nothing)
