"""What is stored about schedules, and how it changes."""

import itertools
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now

from fibers.core.schedules.states import ScheduleEvent, ScheduleStatus, advance, sources
from fibers.core.schedules.timing import Timing
from fibers.errors import IllegalMove, ScheduleInvalid, ScheduleNotFound, SchedulesFull
from fibers.models.schedules import Schedule, ScheduleRun
from fibers.schedules import firing, services
from fibers.schedules.services import ScheduleDraft

pytestmark = pytest.mark.django_db(transaction=True)


def draft(timing: Timing, **options: Any) -> ScheduleDraft:
    return ScheduleDraft(**{"scope": "one", "timing": timing, "function": "schedules.none", **options})


def make(timing: Timing | None = None, **options: Any) -> Schedule:
    return services.create_schedule(draft(timing or Timing.every(60), **options))[0]


def test_the_same_once_is_one_row() -> None:
    first, is_new = services.create_schedule(draft(Timing.cron("0 9 * * *", "UTC"), payload={"a": 1}, is_once=True))
    again, is_again = services.create_schedule(draft(Timing.cron("0 9  * * *", "UTC"), payload={"a": 1}, is_once=True))
    other, _new = services.create_schedule(draft(Timing.cron("0 9 * * *", "UTC"), payload={"a": 2}, is_once=True))
    elsewhere, _also = services.create_schedule(
        draft(Timing.cron("0 9 * * *", "UTC"), payload={"a": 1}, is_once=True, scope="two")
    )
    assert (is_new, is_again, first.pk == again.pk) == (True, False, True)
    assert len({first.pk, other.pk, elsewhere.pk}) == 3


def test_what_is_not_once_is_stored_each_time() -> None:
    assert make(Timing.delay(5)).pk != make(Timing.delay(5)).pk


def test_one_that_ended_does_not_stand_in_the_way_of_the_same_again() -> None:
    first = make(Timing.delay(0), is_once=True)
    while not firing.fire_due():  # the clock of the database may be coarser than ours
        time.sleep(0.001)
    assert make(Timing.delay(0), is_once=True).pk != first.pk


def test_two_that_store_the_same_at_once_make_one_row() -> None:
    start = threading.Barrier(3)

    def store() -> None:
        start.wait(10)
        try:
            make(Timing.cron("0 9 * * *", "UTC"), is_once=True)
        finally:
            connection.close()

    threads = [threading.Thread(target=store) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert Schedule.objects.count() == 1


def test_a_user_has_so_many_schedules_at_most(settings: Any) -> None:
    settings.THINK_SCHEDULES_PER_USER = 2
    user, other = User.objects.create(username="a"), User.objects.create(username="b")
    make(Timing.delay(0), owner_id=user.pk)
    make(owner_id=user.pk)
    with pytest.raises(SchedulesFull, match="2 schedules"):
        make(owner_id=user.pk)
    make(owner_id=other.pk)
    firing.fire_due()  # the one with a delay ends, and makes room
    make(owner_id=user.pk)


@pytest.mark.parametrize("seconds", [0, 0.5, -1, 30 * 86_400 + 1, float("nan"), float("inf"), True])
def test_an_impossible_interval_is_refused(seconds: float) -> None:
    with pytest.raises(ScheduleInvalid):
        Timing.every(seconds)


@pytest.mark.parametrize("text", ["", "* * * *", "61 * * * *", "0 0 30 2 *", "a b c d e", "* * * * * *", "* " * 60])
def test_an_impossible_cron_text_is_refused(text: str) -> None:
    with pytest.raises(ScheduleInvalid):
        Timing.cron(text, "UTC")


@pytest.mark.parametrize("zone", ["", "Mars/Base", "../etc", "/etc/passwd", "Europe"])
def test_an_impossible_zone_is_refused(zone: str) -> None:
    with pytest.raises(ScheduleInvalid):
        Timing.cron("0 9 * * *", zone)


def test_times_of_people_lie_a_minute_apart_at_least() -> None:
    services.check_shortest(Timing.every(60))
    services.check_shortest(Timing.cron("* * * * *", "UTC"))
    services.check_shortest(Timing.delay(0))
    with pytest.raises(ScheduleInvalid, match="60 seconds"):
        services.check_shortest(Timing.every(59))


def test_an_input_that_is_too_large_is_refused() -> None:
    with pytest.raises(ScheduleInvalid, match="at most"):
        make(payload="x" * services.MAX_PAYLOAD_BYTES)


def test_a_held_schedule_does_not_fire_and_goes_on_at_its_next_time() -> None:
    schedule = make()
    assert services.pause_schedule(schedule.pk)
    Schedule.objects.update(next_at=Now() - timedelta(hours=5))
    assert firing.fire_due() == 0
    assert services.upcoming(Schedule.objects.get()) == []
    assert services.resume_schedule(schedule.pk)
    assert firing.fire_due() == 0  # what was due while it was held is not made up for
    times = services.upcoming(Schedule.objects.get())
    assert len(times) == 5


def test_what_is_due_once_keeps_its_instant_while_it_is_held() -> None:
    at = datetime(2040, 1, 1, 12, tzinfo=UTC)
    schedule = make(Timing.at(at))
    services.pause_schedule(schedule.pk)
    services.resume_schedule(schedule.pk)
    assert services.upcoming(Schedule.objects.get()) == [at]


def test_a_test_run_changes_no_times() -> None:
    schedule = make()
    services.pause_schedule(schedule.pk)
    before = Schedule.objects.get()
    fiber = services.run_now(schedule.pk)
    run = ScheduleRun.objects.get()
    assert (run.fiber_id, run.is_test) == (fiber.pk, True)
    after = Schedule.objects.get()
    assert (after.next_at, after.status, after.revision) == (before.next_at, before.status, before.revision)


def test_what_is_unknown_is_not_found() -> None:
    assert not services.cancel_schedule("sch_none")
    assert not services.pause_schedule("sch_none")
    with pytest.raises(ScheduleNotFound):
        services.run_now("sch_none")
    with pytest.raises(ScheduleNotFound):
        services.edit_schedule("sch_none", title="x")


@pytest.mark.parametrize(("status", "event"), list(itertools.product(ScheduleStatus, ScheduleEvent)))
def test_each_operation_moves_as_the_table_says(status: ScheduleStatus, event: ScheduleEvent) -> None:
    timing = Timing.delay(0) if event is ScheduleEvent.FIRE_LAST else Timing.every(60)
    schedule = make(timing)
    Schedule.objects.update(status=status, next_at=Now() - timedelta(seconds=1))
    if event in {ScheduleEvent.FIRE, ScheduleEvent.FIRE_LAST}:
        firing.fire_due()
    elif event is ScheduleEvent.PAUSE:
        services.pause_schedule(schedule.pk)
    elif event is ScheduleEvent.RESUME:
        services.resume_schedule(schedule.pk)
    elif event is ScheduleEvent.BREAK:
        firing.break_schedule(Schedule.objects.get(), "its zone is gone")
    else:
        services.edit_schedule(schedule.pk, Timing.every(90))
    try:
        expected = advance(status, event)
    except IllegalMove:
        expected = status
    assert Schedule.objects.get().status == expected
    assert (status in sources(event)) == (Schedule.objects.get().revision > 0)


def test_what_people_create_is_not_more_frequent_than_the_setting_says(settings: Any) -> None:
    settings.THINK_SCHEDULE_SHORTEST_SECONDS = 600
    services.check_shortest(Timing.every(600))
    with pytest.raises(ScheduleInvalid, match="every 600 seconds at most"):
        services.check_shortest(Timing.every(599))
