"""Firing: what is due begins once, however many look, however late."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from fibers import services as fibers
from fibers.context import FiberContext
from fibers.core.schedules.states import ScheduleStatus
from fibers.core.schedules.timing import Timing
from fibers.core.states import FiberStatus
from fibers.errors import Failed
from fibers.execution.recovery import sweep
from fibers.models import Fiber
from fibers.models.schedules import Schedule, ScheduleRun
from fibers.registry import durable
from fibers.schedules import firing, services
from fibers.schedules.clock import database_now
from fibers.schedules.services import ScheduleDraft
from fibers.testing import run_until_idle
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONValue

pytestmark = pytest.mark.django_db(transaction=True)

seen: list[tuple[JSONValue, JSONValue]] = []


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    seen.clear()


@durable("schedules.noted")
async def noted(ctx: FiberContext) -> JSONValue:
    row = await Schedule.objects.aget(pk=ctx.payload["schedule"]["id"])
    seen.append((ctx.payload, row.payload))
    return None


@durable("schedules.failing")
async def failing(ctx: FiberContext) -> JSONValue:
    raise Failed("broken", "it never works", is_final=True)


def make(timing: Timing, function: str = "schedules.noted", **options: Any) -> Schedule:
    draft = ScheduleDraft(scope="one", timing=timing, function=function, payload={"n": 1}, **options)
    return services.create_schedule(draft)[0]


def let_be_due(schedule: Schedule, seconds: float = 1) -> datetime:
    Schedule.objects.filter(pk=schedule.pk).update(next_at=Now() - timedelta(seconds=seconds))
    schedule.refresh_from_db()
    assert schedule.next_at is not None
    return schedule.next_at


def runs_of(schedule: Schedule) -> list[ScheduleRun]:
    return list(ScheduleRun.objects.filter(schedule=schedule).select_related("fiber").order_by("pk"))


async def test_an_occurrence_runs_with_its_input_and_its_key() -> None:
    schedule = await db(make, Timing.every(60))
    due = await db(let_be_due, schedule)
    await run_until_idle()
    key = f"schedule:{schedule.pk}:{due.astimezone(UTC).strftime('%Y%m%dT%H%M%S.%fZ')}"
    facts = {"id": schedule.pk, "key": key, "due": due.astimezone(UTC).isoformat(), "is_test": False}
    assert seen == [({"schedule": facts}, {"n": 1})]
    assert [run.fiber.key for run in await db(runs_of, schedule)] == [key]


def test_nothing_begins_before_it_is_due() -> None:
    make(Timing.every(60))
    make(Timing.delay(30))
    assert firing.fire_due() == 0
    assert not Fiber.objects.exists()


@pytest.mark.parametrize("timing", [Timing.delay(0), Timing.at(datetime(2100, 1, 1, tzinfo=UTC))])
def test_what_is_due_once_ends(timing: Timing) -> None:
    schedule = make(timing)
    let_be_due(schedule)
    assert (firing.fire_due(), firing.fire_due()) == (1, 0)
    schedule.refresh_from_db()
    assert (schedule.status, schedule.next_at) == (ScheduleStatus.ENDED, None)


def test_missed_occurrences_fire_once_and_the_next_is_armed() -> None:
    interval, wall = make(Timing.every(60)), make(Timing.cron("*/5 * * * *", "UTC"))
    for schedule in (interval, wall):
        let_be_due(schedule, seconds=7 * 3600)
    assert (firing.fire_due(), firing.fire_due()) == (2, 0)
    now = database_now()
    for schedule in (interval, wall):
        schedule.refresh_from_db()
        assert len(runs_of(schedule)) == 1
        assert schedule.next_at is not None
        assert now - timedelta(seconds=1) < schedule.next_at <= now + timedelta(seconds=301)


async def test_a_failed_run_leaves_the_next_one_armed() -> None:
    schedule = await db(lambda: make(Timing.every(60), function="schedules.failing"))
    await db(let_be_due, schedule)
    await run_until_idle()
    await db(let_be_due, schedule)
    await run_until_idle()
    runs = await db(runs_of, schedule)
    assert [run.fiber.status for run in runs] == [FiberStatus.FAILED] * 2
    await db(schedule.refresh_from_db)
    assert schedule.status == ScheduleStatus.ACTIVE


def test_many_that_look_at_once_fire_once() -> None:
    schedules = [make(Timing.every(60 + n)) for n in range(5)]
    for schedule in schedules:
        let_be_due(schedule)
    start = threading.Barrier(4)

    def look() -> None:
        start.wait(10)
        try:
            firing.fire_due()
        finally:
            connection.close()

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [len(runs_of(schedule)) for schedule in schedules] == [1] * 5
    assert Fiber.objects.count() == 5


@pytest.mark.parametrize("statement", range(1, 6))
def test_a_process_that_dies_between_firing_and_arming_has_done_neither(statement: int) -> None:
    schedule = make(Timing.every(60))
    due = let_be_due(schedule)
    left = statement

    class Died(BaseException):
        pass

    def die(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal left
        done = execute(sql, params, many, context)
        if connection.in_atomic_block and sql.startswith(("INSERT", "UPDATE", "SELECT")):
            left -= 1
            if left == 0:
                raise Died
        return done

    with connection.execute_wrapper(die), pytest.raises(Died):
        firing.fire_due()
    schedule.refresh_from_db()
    assert (schedule.next_at, Fiber.objects.count(), ScheduleRun.objects.count()) == (due, 0, 0)
    assert firing.fire_due() == 1
    assert len(runs_of(schedule)) == 1


def test_an_occurrence_that_was_read_before_a_change_does_not_begin() -> None:
    schedule = make(Timing.every(60))
    let_be_due(schedule)
    stale = Schedule.objects.get(pk=schedule.pk)
    services.edit_schedule(schedule.pk, Timing.every(90))
    assert not firing._fire(stale, database_now())
    assert not Fiber.objects.exists()


def test_an_occurrence_is_left_out_while_the_run_before_goes_on() -> None:
    schedule = make(Timing.every(60))
    let_be_due(schedule)
    firing.fire_due()
    due = let_be_due(schedule)
    assert firing.fire_due() == 0
    schedule.refresh_from_db()
    assert schedule.skipped == 1
    assert schedule.next_at is not None
    assert schedule.next_at > due
    Fiber.objects.update(status=FiberStatus.COMPLETED, finished_at=Now())
    let_be_due(schedule)
    assert firing.fire_due() == 1
    schedule.refresh_from_db()
    assert schedule.skipped == 0


def test_runs_overlap_where_it_is_allowed() -> None:
    schedule = make(Timing.every(60), can_overlap=True)
    for _ in range(2):
        let_be_due(schedule)
        assert firing.fire_due() == 1


def test_a_run_that_hangs_is_stopped_and_the_next_one_begins() -> None:
    schedule = make(Timing.every(60), max_run_seconds=300)
    let_be_due(schedule)
    firing.fire_due()
    ScheduleRun.objects.update(created_at=Now() - timedelta(seconds=301))
    let_be_due(schedule)
    assert firing.fire_due() + firing.fire_due() == 1
    hung, fresh = runs_of(schedule)
    assert (hung.fiber.status, hung.fiber.reason) == (FiberStatus.CANCELLED, firing.HUNG)
    assert fresh.fiber.status == FiberStatus.PENDING


def test_one_whose_zone_is_gone_does_not_stop_the_others() -> None:
    lost, other = make(Timing.cron("0 9 * * *", "Europe/Berlin")), make(Timing.every(60))
    Schedule.objects.filter(pk=lost.pk).update(zone="Europe/Atlantis")
    let_be_due(lost, seconds=5)
    let_be_due(other)
    assert firing.fire_due() == 1
    lost.refresh_from_db()
    assert lost.status == ScheduleStatus.BROKEN
    assert "Atlantis" in lost.error


def test_a_clock_that_is_put_back_repeats_nothing() -> None:
    schedule = make(Timing.cron("*/5 * * * *", "UTC"))
    due = let_be_due(schedule)
    firing.fire_due()
    # The clock was wrong: it is put back, and the same instant comes again.
    Schedule.objects.filter(pk=schedule.pk).update(next_at=due)
    Fiber.objects.update(status=FiberStatus.COMPLETED, finished_at=Now())
    firing.fire_due()
    assert Fiber.objects.count() == 1
    assert len(runs_of(schedule)) == 1


def test_ten_thousand_idle_schedules_cost_one_indexed_query() -> None:
    user = User.objects.create(username="many")
    first = make(Timing.every(3600), owner_id=user.pk)
    first.next_at = database_now() + timedelta(hours=1)
    Schedule.objects.bulk_create(
        [
            Schedule(scope=f"s{n}", owner=user, kind="interval", spec="3600", function="x", next_at=first.next_at)
            for n in range(10_000)
        ]
    )
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert firing.fire_due() == 0
    assert len(queries) == 1
    assert (
        "think_schedule_due"
        in Schedule.objects.filter(status="active", next_at__lte=Now()).order_by("next_at", "pk")[:100].explain()
    )


def test_an_idle_sweep_writes_nothing() -> None:
    make(Timing.every(60))
    with CaptureQueriesContext(connection) as queries:
        sweep(prune=False)
    assert all(query["sql"].startswith("SELECT") for query in queries)


def test_old_runs_make_room_and_what_ended_is_deleted() -> None:
    schedule = make(Timing.every(60))
    for _ in range(firing.KEPT_RUNS + 3):
        let_be_due(schedule)
        firing.fire_due()
        Fiber.objects.update(status=FiberStatus.COMPLETED, finished_at=Now() - timedelta(days=3))
    assert len(runs_of(schedule)) == firing.KEPT_RUNS + 1  # the newest had not ended when it was counted
    sweep(prune=True)
    assert Fiber.objects.count() == firing.KEPT_RUNS + 1  # those that are shown stay
    once = make(Timing.delay(0))
    let_be_due(once)
    firing.fire_due()
    Schedule.objects.filter(pk=once.pk).update(updated_at=Now() - timedelta(days=3))
    assert firing.prune_ended() == 0  # its run is to come
    Fiber.objects.update(status=FiberStatus.COMPLETED, finished_at=Now())
    assert firing.prune_ended() == 1
    assert not ScheduleRun.objects.filter(schedule_id=once.pk).exists()


def test_a_cancel_within_a_transaction_that_is_undone_changes_nothing() -> None:
    schedule = make(Timing.every(60))
    with transaction.atomic():
        services.cancel_schedule(schedule.pk)
        transaction.set_rollback(True)
    let_be_due(schedule)
    assert firing.fire_due() == 1
    assert fibers.cancel_fiber(runs_of(schedule)[0].fiber_id)
