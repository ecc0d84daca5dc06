"""Real Celery workers, killed, stopped and doubled: nothing is lost, and nothing with a key happens twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, current_app
from django.contrib.auth.models import Group, User
from django.db import connection, transaction

from fibers import selectors, services
from fibers.models import EffectEntry, Fiber

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.acceptance]

ROOT = Path(__file__).resolve().parents[3]
QUICK = {
    "THINK_FIBER_LEASE_SECONDS": 1.5,
    "THINK_FIBER_HEARTBEAT_SECONDS": 0.4,
    "THINK_FIBER_SWEEP_SECONDS": 0.3,
}
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start_worker(redis_url: str, settings: Any, tmp_path: Path) -> Iterator[Start]:
    """Start a worker process on the test's own database; returns once it consumes."""
    settings.REDIS_URL = redis_url
    keys = ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")
    database = {key: connection.settings_dict[key] for key in keys if connection.settings_dict.get(key)}
    before = current_app._get_current_object()  # type: ignore[attr-defined]  # the proxy's target
    app = Celery("fiber-site", broker=redis_url.replace("unix://", "redis+socket://"))
    app.conf.task_default_queue = "fiber-site"
    app.set_default()
    app.set_current()
    started: list[subprocess.Popen[bytes]] = []

    def start(*, wait_until_ready: bool = True, **options: float) -> "subprocess.Popen[bytes]":
        log = tmp_path / f"worker{len(started)}.log"
        environment = os.environ | {
            "FIBER_SITE_DATABASE": json.dumps(database, default=str),
            "FIBER_SITE_REDIS": redis_url,
            "FIBER_SITE_SETTINGS": json.dumps(QUICK | options),
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-m", "celery", "-A", "tests.acceptance.fibers.site.celery_app", "worker"]
        command += [
            "--pool",
            "threads",
            "--concurrency",
            "16",
            "--loglevel",
            "INFO",
            "--hostname",
            f"w{len(started)}@h",
        ]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log.open("wb"), stderr=subprocess.STDOUT)
        started.append(process)
        if wait_until_ready:
            wait_for(lambda: b" ready." in log.read_bytes(), say=lambda: log.read_text())
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=10)
    app.close()
    before.set_default()
    before.set_current()


def wait_for(condition: Callable[[], bool], *, seconds: float = 30, say: Callable[[], str] = str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, say()
        time.sleep(0.03)


def reached(fiber: Fiber) -> bool:
    return Group.objects.filter(name=f"reached {fiber.pk}").exists()


def status(fiber: Fiber) -> str:
    return str(selectors.get_fiber(fiber.pk).status)


def effects(fiber: Fiber) -> list[str]:
    names = Group.objects.filter(name__startswith=f"effect {fiber.pk}").order_by("id").values_list("name", flat=True)
    return [name.split(" ")[2] for name in names]


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10)


@pytest.mark.smoke("stop0")
@pytest.mark.parametrize("stop", [[0, "before"], [1, "inside"], [1, "after"], [3, "end"]])
def test_a_killed_worker_is_replaced_and_each_effect_happened_once(start_worker: Start, stop: list[Any]) -> None:
    first = start_worker()
    with transaction.atomic():  # both are there before one holds the only writer of SQLite
        fiber = services.start_fiber("site.work", {"steps": 3, "stop": stop}, lane="a")
        follower = services.start_fiber("site.work", {"steps": 1}, lane="a")
    wait_for(lambda: reached(fiber))
    kill(first)
    assert status(fiber) == "running"
    start_worker()
    wait_for(lambda: status(follower) == "completed")
    row = selectors.get_fiber(fiber.pk)
    assert (row.status, row.result, row.attempt) == ("completed", [0, 10, 20], 2)
    assert effects(fiber) == ["s:0", "s:1", "s:2"]
    assert effects(follower) == ["s:0"]


def test_another_worker_that_already_runs_takes_over(start_worker: Start) -> None:
    workers = [start_worker(), start_worker()]
    fibers = [services.start_fiber("site.work", {"steps": 2, "stop": [1, "after"]}) for _ in range(8)]
    wait_for(lambda: all(reached(fiber) for fiber in fibers))
    running = Fiber.objects.filter(status="running", pk__in=[fiber.pk for fiber in fibers])
    holders = {row.worker.split(":")[1] for row in running}
    victim = next(process for process in workers if str(process.pid) in holders)
    kill(victim)
    others = [fiber for fiber in fibers if selectors.get_fiber(fiber.pk).worker.split(":")[1] == str(victim.pid)]
    assert others
    wait_for(lambda: all(status(fiber) == "completed" for fiber in others))
    for fiber in others:
        assert effects(fiber) == ["s:0", "s:1"]
        assert selectors.get_fiber(fiber.pk).result == [0, 10]


def test_with_the_default_clocks_a_killed_fiber_goes_on_within_twenty_seconds(start_worker: Start) -> None:
    defaults = {
        "THINK_FIBER_LEASE_SECONDS": 10.0,
        "THINK_FIBER_HEARTBEAT_SECONDS": 3.0,
        "THINK_FIBER_SWEEP_SECONDS": 2.0,
    }
    for _ in range(2):
        start_worker(**defaults)
    fiber = services.start_fiber("site.work", {"steps": 2, "stop": [1, "before"]})
    wait_for(lambda: reached(fiber))
    victim = selectors.get_fiber(fiber.pk).worker.split(":")[1]
    os.kill(int(victim), signal.SIGKILL)
    killed = time.monotonic()
    wait_for(lambda: status(fiber) == "completed")
    assert time.monotonic() - killed < 20


def test_a_stopped_worker_hands_its_fiber_back_and_exits_in_time(start_worker: Start) -> None:
    worker = start_worker()
    fiber = services.start_fiber("site.wait", None)
    wait_for(lambda: reached(fiber))
    worker.send_signal(signal.SIGTERM)
    stopped = time.monotonic()
    assert worker.wait(timeout=20) == 0
    assert time.monotonic() - stopped < 10, "`stop_grace_period` of `docs/deployment/compose.yml`"
    row = selectors.get_fiber(fiber.pk)
    assert (row.status, row.reason, row.recoveries, row.retries) == ("pending", "shutdown", 0, 0)
    assert [step.value for step in selectors.history(fiber.pk)] == ["shutdown"]
    start_worker()
    wait_for(lambda: status(fiber) == "completed")
    assert selectors.get_fiber(fiber.pk).result == "resumed"


def test_cancel_from_another_process_stops_the_fiber_within_a_second(start_worker: Start) -> None:
    start_worker(THINK_FIBER_HEARTBEAT_SECONDS=60.0, THINK_FIBER_LEASE_SECONDS=120.0)
    fiber = services.start_fiber("site.wait", None)
    wait_for(lambda: reached(fiber))
    asked = time.monotonic()
    assert services.cancel_fiber(fiber.pk, reason="user")
    wait_for(lambda: status(fiber) == "cancelled", seconds=5)
    assert time.monotonic() - asked < 1
    assert [step.value for step in selectors.history(fiber.pk)] == ["cancel"]


@pytest.mark.smoke
def test_what_was_started_while_no_worker_ran_is_run_by_the_first(start_worker: Start) -> None:
    fiber = services.start_fiber("site.work", {"steps": 1})
    Fiber.objects.filter(pk=fiber.pk).update(dispatched_at=None)
    current_app.control.purge()  # and its message is lost
    start_worker()
    wait_for(lambda: status(fiber) == "completed", seconds=10)
    assert effects(fiber) == ["s:0"]


def test_a_rolling_deploy_runs_what_only_its_new_workers_have_and_spends_no_retry(start_worker: Start) -> None:
    old = start_worker()
    fibers = [services.start_fiber("site.new", None) for _ in range(6)]
    known = services.start_fiber("site.work", {"steps": 1})
    wait_for(lambda: status(known) == "completed")  # the old worker had its turn with the others, too
    assert {(row.status, row.attempt) for row in map(selectors.get_fiber, (fiber.pk for fiber in fibers))} == {
        ("pending", 0)
    }
    start_worker(FIBER_SITE_IS_NEW=1)  # beside the old one, which takes its share of the messages
    wait_for(lambda: all(status(fiber) == "completed" for fiber in fibers))
    kill(old)
    assert [selectors.get_fiber(fiber.pk).result for fiber in fibers] == [{"attempt": 1, "retries": 0}] * 6


def test_the_snapshot_of_a_killed_worker_is_there_when_its_fiber_is_restarted(start_worker: Start) -> None:
    first = start_worker()
    fiber = services.start_fiber("site.lost", None)
    wait_for(lambda: reached(fiber))
    kill(first)
    start_worker()
    wait_for(lambda: status(fiber) == "completed")
    row = selectors.get_fiber(fiber.pk)
    assert (row.result, row.attempt, row.retries) == ({"snapshot": {"page": 7}, "retries": 1}, 2, 1)


@pytest.mark.long
def test_rows_that_no_signal_told_of_are_handled_once_though_a_worker_is_killed(start_worker: Start) -> None:
    names = ["slow", *(f"u{number}" for number in range(20))]
    User.objects.bulk_create([User(username=name, first_name="waiting") for name in names])
    workers = {process.pid: process for process in (start_worker(), start_worker())}
    held = Fiber.objects.filter(name="effect:site.greet")
    wait_for(lambda: any(reached(fiber) for fiber in held))
    (fiber,) = [fiber for fiber in held if reached(fiber)]
    kill(workers[int(fiber.worker.split(":")[1])])
    wait_for(lambda: Group.objects.filter(name__startswith="greeted").count() == len(names))
    wait_for(lambda: status(fiber) == "completed")
    found = [
        name.split(" ")[1] for name in Group.objects.filter(name__startswith="greeted").values_list("name", flat=True)
    ]
    assert sorted(found) == sorted(names)
    assert Fiber.objects.filter(name="effect:site.greet").count() == EffectEntry.objects.count() == len(names)
    assert selectors.get_fiber(fiber.pk).attempt == 2
