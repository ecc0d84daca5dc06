"""Telling the workers: on commit, by name, and never at the caller's expense."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery, current_app
from django.db import transaction
from django.db.models.functions import Now

from fibers import selectors, services
from fibers.context import FiberContext
from fibers.execution.recovery import sweep
from fibers.models import Fiber
from fibers.models.served import ExecutorKind
from fibers.queue import dispatch, names, presence
from fibers.registry import durable

pytestmark = pytest.mark.django_db(transaction=True)


QUEUE = "dispatch-test"


@durable("dispatch.test")
async def work(_ctx: FiberContext) -> None:
    """Sent, and not run here."""


@durable("dispatch.routed", members=tuple, queue=lambda name: f"of-{name.partition(':')[2]}")
async def routed(_ctx: FiberContext) -> None:
    """As above."""


@contextmanager
def celery_app(url: str) -> Iterator[None]:
    """Make an app with this broker the current one, in all threads."""
    before = current_app._get_current_object()  # type: ignore[attr-defined]  # the proxy's target
    app = Celery("dispatch-test", broker=url)
    app.conf.task_default_queue = QUEUE
    app.set_default()
    app.set_current()
    try:
        yield
    finally:
        app.close()
        before.set_default()
        before.set_current()


@pytest.fixture
def broker(redis_url: str, settings: Any) -> Iterator[Callable[..., int]]:
    """Queues that can be looked into: call it to learn how many tasks wait in one."""
    settings.THINK_FIBER_DISPATCH = "celery"
    with celery_app(redis_url.replace("unix://", "redis+socket://")), redis.Redis.from_url(redis_url) as client:
        client.delete(QUEUE, "of-a", "of-b")
        yield lambda queue=QUEUE: int(client.llen(queue))


@pytest.fixture
def dead_broker(settings: Any, tmp_path: Path) -> Iterator[None]:
    settings.THINK_FIBER_DISPATCH = "celery"
    with celery_app(f"redis+socket://{tmp_path}/nobody.sock"):
        yield


def age(fiber: Fiber, seconds: float) -> None:
    Fiber.objects.filter(pk=fiber.pk).update(dispatched_at=Now() - timedelta(seconds=seconds))


def test_a_task_is_sent_when_the_transaction_commits(broker: Any) -> None:
    with transaction.atomic():
        services.start_fiber("dispatch.test", 1)
        assert broker() == 0
    assert broker() == 1


def test_messages_go_to_the_queues_of_their_functions_while_a_worker_listens(broker: Any) -> None:
    presence.note_served(["dispatch.routed:a"], ExecutorKind.WORKER)
    presence.note_served(["dispatch.routed:b"], ExecutorKind.PROGRAM)
    with transaction.atomic():
        started = [services.start_fiber(f"dispatch.routed:{member}", None).pk for member in ("a", "b", "a")]
    assert [broker(queue) for queue in ("of-a", "of-b", QUEUE)] == [2, 0, 0]
    assert [selectors.get_fiber(pk).dispatched_at is None for pk in started] == [False, True, False]
    assert sweep().dispatched == 0  # of a process without these members


@pytest.fixture
def takers(redis_url: str, broker: Any) -> Iterator["redis.Redis"]:
    """A worker takes names of the queue of all workers, and none of any other; gives a client to look with."""
    with redis.Redis.from_url(redis_url) as client:
        client.set(names.taken_key(""), "1", ex=60)
        yield client


def test_names_are_left_while_a_worker_takes_them(broker: Any, takers: "redis.Redis") -> None:
    presence.note_served(["dispatch.routed:c"], ExecutorKind.WORKER)
    with transaction.atomic():
        started = [services.start_fiber("dispatch.test", 1).pk for _ in range(2)]
        assert takers.llen(names.list_of("")) == 0
        services.start_fiber("dispatch.routed:c", None)
    assert [name.decode() for name in takers.lrange(names.list_of(""), 0, -1)] == started  # type: ignore[union-attr]
    assert takers.llen(names.list_of("of-c")) == 0
    assert (broker(), broker("of-c")) == (0, 1)  # whose names no worker takes
    dispatch.dispatch_now(started, delay_seconds=60)
    assert (takers.llen(names.list_of("")), broker()) == (2, 1)  # Celery knows how to wait
    takers.delete(names.taken_key(""))
    services.start_fiber("dispatch.test", 1)
    assert (takers.llen(names.list_of("")), broker()) == (2, 2)


def test_without_redis_names_are_not_left(broker: Any, takers: "redis.Redis", settings: Any, tmp_path: Path) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/none.sock"
    services.start_fiber("dispatch.test", 1)
    assert (takers.llen(names.list_of("")), broker()) == (0, 1)


def test_a_transaction_that_rolls_back_sends_nothing(broker: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        start_and_fail()
    assert (broker(), Fiber.objects.count()) == (0, 0)


@transaction.atomic
def start_and_fail() -> None:
    services.start_fiber("dispatch.test", 1)
    raise ZeroDivisionError


def test_a_known_key_sends_nothing_more(broker: Any) -> None:
    for _ in range(3):
        services.start_fiber("dispatch.test", 1, key="k")
    assert broker() == 1


def test_with_the_broker_down_nothing_is_raised_and_nothing_is_lost(dead_broker: None) -> None:
    started = time.monotonic()
    fiber = services.start_fiber("dispatch.test", 1)
    assert time.monotonic() - started < 2
    row = selectors.get_fiber(fiber.pk)
    assert (row.status, row.dispatched_at) == ("pending", None)


def test_the_sweep_sends_at_once_what_the_broker_missed(broker: Any) -> None:
    fiber = services.start_fiber("dispatch.test", 1)
    dispatch.forget_dispatch([fiber.pk])
    assert sweep().dispatched == 1
    assert broker() == 2
    assert sweep().dispatched == 0  # dispatched just now


def test_the_sweep_sends_again_what_was_not_claimed(broker: Any) -> None:
    fiber = services.start_fiber("dispatch.test", 1)
    age(fiber, 9)
    assert sweep().dispatched == 0
    age(fiber, 11)
    assert sweep().dispatched == 1


def test_the_sweep_sends_only_what_could_be_claimed(broker: Any) -> None:
    first, second = (services.start_fiber("dispatch.test", n, lane="a") for n in range(2))
    delayed = services.start_fiber("dispatch.test", 1, delay_seconds=60)
    for fiber in (first, second, delayed):
        age(fiber, 60)
    assert sweep().dispatched == 1


def test_a_short_delay_is_scheduled_and_swept_as_well(broker: Any) -> None:
    fiber = services.start_fiber("dispatch.test", 1, delay_seconds=0.75)
    assert broker() == 1
    assert sweep().dispatched == 0
    Fiber.objects.filter(pk=fiber.pk).update(available_at=Now())
    assert sweep().dispatched == 1  # the one that held the message for later may have died


def test_a_delayed_fiber_is_sent_when_it_is_due(broker: Any) -> None:
    fiber = services.start_fiber("dispatch.test", 1, delay_seconds=60)
    assert (broker(), sweep().dispatched) == (0, 0)
    Fiber.objects.filter(pk=fiber.pk).update(available_at=Now())
    assert sweep().dispatched == 1


def test_cancelling_the_first_of_a_lane_sends_the_next(broker: Any) -> None:
    first, _ = (services.start_fiber("dispatch.test", n, lane="a") for n in range(2))
    assert broker() == 2
    services.cancel_fiber(first.pk)
    assert broker() == 3


def test_fibers_of_a_burst_share_tasks(broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread sends, the others leave their fibers to it."""
    sending, go_on = threading.Event(), threading.Event()
    send = dispatch.dispatch_now
    sent: list[int] = []

    def slow(fiber_ids: Sequence[str], **options: Any) -> int:
        sent.append(len(fiber_ids))
        sending.set()
        assert go_on.wait(10)
        return send(fiber_ids, **options)

    monkeypatch.setattr(dispatch, "dispatch_now", slow)
    first = threading.Thread(target=dispatch.dispatch_on_commit, args=(["f0"],))
    first.start()
    assert sending.wait(10)
    for number in range(1, 12):
        dispatch.dispatch_on_commit([f"f{number}"])  # returns at once: the other thread has the work
    assert broker() == 0
    go_on.set()
    first.join(10)
    assert sent == [1, dispatch.BATCH, 11 - dispatch.BATCH]
    assert broker() == 3


def test_a_fault_while_sending_leaves_the_outbox_usable(broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "dispatch_now", lambda _ids, **_queue: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            dispatch._outbox.send(["f1"], "")
    dispatch.dispatch_on_commit(["f2"])
    assert broker() == 1
