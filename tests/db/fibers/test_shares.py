"""A share: how many fibers of one kind may run at a time, so that one person's long answers leave room for others."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fibers import services
from fibers.conf import fiber_settings
from fibers.context import FiberContext
from fibers.core.states import FiberEvent, FiberStatus
from fibers.execution.recovery import _dispatch_unclaimed, _fair
from fibers.models import Fiber
from fibers.queue import leases
from fibers.queue.leases import Settlement
from fibers.registry import durable, known_names

pytestmark = pytest.mark.django_db


@durable("share.test")
async def work(_ctx: FiberContext) -> None:
    """Claimed, and not run here."""


@pytest.fixture(autouse=True)
def _two_at_a_time(settings: Any) -> None:
    settings.THINK_RUNNING_TURNS_PER_USER = 2


def start(share: str | None, count: int = 1) -> list[Fiber]:
    return [services.start_fiber("share.test", {}, share=share) for _ in range(count)]


def claimed(fibers: list[Fiber]) -> list[bool]:
    return [leases.claim(fiber.pk, "w1") is not None for fiber in fibers]


def finish(fiber: Fiber) -> None:
    fence = Fiber.objects.get(pk=fiber.pk).fence
    leases.settle(fiber.pk, fence, Settlement(event=FiberEvent.COMPLETE, progress=0))


def test_one_share_leaves_threads_to_others() -> None:
    mine, others, free = start("user:1", 5), start("user:2", 1), start(None, 3)
    assert claimed(mine) == [True, True, False, False, False]
    assert claimed(others) == [True]
    assert claimed(free) == [True, True, True]


def test_a_refused_fiber_runs_once_there_is_room() -> None:
    first, _second, third = start("user:1", 3)
    claimed([first, _second])
    assert leases.claim(third.pk, "w1") is None
    assert Fiber.objects.get(pk=third.pk).status == FiberStatus.PENDING
    assert Fiber.objects.get(pk=third.pk).retries == 0
    finish(first)
    assert leases.claim(third.pk, "w1") is not None


def test_the_next_sweep_sends_what_was_refused(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    def note(ids: list[str], queue: str) -> int:
        assert queue == ""  # that of all workers
        sent.extend(ids)
        return len(ids)

    monkeypatch.setattr("fibers.execution.recovery.dispatch_now", note)
    first, second, third = start("user:1", 3)
    assert claimed([first, second, third]) == [True, True, False]
    assert _dispatch_unclaimed(known_names(), None) == 0  # there is no room yet, so nothing is dispatched in vain
    finish(first)
    assert _dispatch_unclaimed(known_names(), None) == 1
    assert sent == [third.pk]


def test_a_sweep_sends_no_more_of_a_share_than_may_run() -> None:
    found = [(f"a{index}", "user:1") for index in range(5)] + [("b", "user:2"), ("c", None), ("d", None), ("e", None)]
    assert _fair(found) == ["a0", "a1", "b", "c", "d", "e"]


def test_no_limit_is_no_condition(settings: Any) -> None:
    settings.THINK_RUNNING_TURNS_PER_USER = 0
    assert claimed(start("user:1", 5)) == [True] * 5


def test_a_claim_stays_one_update_and_reads_no_more_rows_than_the_limit() -> None:
    assert fiber_settings.running_per_share == 2
    fiber = start("user:1")[0]
    with CaptureQueriesContext(connection) as queries:
        assert leases.claim(fiber.pk, "w1") is not None
    updates = [query["sql"] for query in queries if query["sql"].startswith("UPDATE")]
    assert len(updates) == 1
    assert "LIMIT 1 OFFSET 1" in updates[0]


def test_running_fibers_of_a_share_are_found_along_an_index() -> None:
    first, *_ = start("user:1", 2)
    claimed([first])
    others = list(range(500))  # of a few rows it would rightly read another small index, or the table
    rows = [Fiber(id=f"fib_{number}", name="share.test", share=f"user:{number}", status="running") for number in others]
    Fiber.objects.bulk_create(rows)
    running = Fiber.objects.filter(share="user:1", status=FiberStatus.RUNNING).order_by()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE think_fibers_fiber")
    assert "think_fiber_share" in str(running.explain())
