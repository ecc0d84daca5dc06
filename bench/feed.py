"""The change feed: what it adds to a turn while it is closed and while it is open, and what reading it costs.

    python -m bench.feed              (SQLite)
    TEST_DATABASE=postgres python -m bench.feed

One process, a model that answers at once: a turn is what this product does itself. Turns are measured by what the
processor did for them, here and in the database's processes, because others may use the machine. The three kinds take
turns in short blocks.
"""

import asyncio
import logging
import os
import statistics
import threading
import time
from pathlib import Path

import django
import uvloop

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
django.setup()

from django.conf import settings  # noqa: E402 - after the set-up
from django.contrib.auth.models import User  # noqa: E402 - after the set-up
from django.db import connection  # noqa: E402 - after the set-up

from bench.durable import hot_log  # noqa: E402 - after the set-up
from bench.rig import Options  # noqa: E402 - after the set-up
from bench.rows import Row, row, table  # noqa: E402 - after the set-up
from bench.sessions import database  # noqa: E402 - after the set-up
from chat.feed import triggers  # noqa: E402 - after the set-up
from chat.feed.reading import open_feed, read_changes  # noqa: E402 - after the set-up
from chat.llm.scripted import ScriptedModel  # noqa: E402 - after the set-up
from chat.models import AgentInstance, FeedHead  # noqa: E402 - after the set-up
from chat.think import InstanceKey, Think  # noqa: E402 - after the set-up
from chat.turns.admission.admission import TurnRequest, admit  # noqa: E402 - after the set-up
from chat.turns.admission.intake import Submit  # noqa: E402 - after the set-up
from fibers.execution.runner import run_fiber  # noqa: E402 - after the set-up
from thinkproject.kernel.aio import db  # noqa: E402 - after the set-up

ROUNDS, SMOKE_ROUNDS = 8, 1
BLOCK, SMOKE_BLOCK = 40, 3
WARM_UP = 12  # turns after which PostgreSQL plans nothing anew
WRITERS, COMMITS, SMOKE_COMMITS = 8, 150, 5
KINDS = ("no triggers", "feed closed", "feed open")
GOAL_PERCENT = 3.0


class BenchFeed(Think):
    """Answers in a word."""

    def get_model(self) -> ScriptedModel:
        """A model that answers at once."""
        return ScriptedModel()


def prepare(kind: str, owner_id: int) -> None:
    """Take the triggers away, or have them with a feed that is closed or open."""
    if kind == KINDS[0]:
        remove_triggers()
    else:
        triggers.install(using="default")
        FeedHead.objects.filter(pk=owner_id).update(is_open=False)
        if kind == KINDS[2]:
            open_feed(owner_id)


def remove_triggers() -> None:
    """Take all triggers of the feed away."""
    with connection.cursor() as cursor:
        for statement in triggers.removals(connection):
            cursor.execute(statement)
        if connection.vendor == "postgresql":
            cursor.execute("COMMENT ON FUNCTION think_none_erased() IS NULL")


def backends() -> list[int]:
    """The processes of the database; none of SQLite, which is in this one."""
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        return [pid for (pid,) in cursor.fetchall()]


def processor_ms(pids: list[int]) -> float:
    """Milliseconds of the processor so far, of this process and these."""
    spent = (
        int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids if Path(f"/proc/{pid}").exists()
    )
    return time.process_time() * 1e3 + sum(spent) / 1e6


async def turns(key: InstanceKey, count: int) -> float:
    """Milliseconds that the processor had to do for a turn, from its admission to its end."""
    pids = await db(backends)
    began = processor_ms(pids)
    for _ in range(count):
        intake = Submit(message={"role": "user", "parts": [{"type": "text", "text": "say: yes"}]})
        admission = await db(admit, key, TurnRequest(intake=intake))
        await run_fiber(admission.turn.fiber_id)
    return (processor_ms(pids) - began) / count


async def turn_rows(owner_id: int, rounds: int, block: int) -> list[Row]:
    """Measure turns of each kind."""
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(rounds):
        for kind in KINDS:
            await db(prepare, kind, owner_id)
            key = InstanceKey(owner_id=owner_id, agent=BenchFeed.route_name(), name=f"{kind} {number}")
            await turns(key, WARM_UP)
            times[kind].append(await turns(key, block))
    rows = [row(f"the processor's time for a turn, {kind}", "ms", times[kind]) for kind in KINDS]
    for kind in KINDS[1:]:  # within each round: what else the machine does is nearly the same there
        more = [100 * (mine / bare - 1) for mine, bare in zip(times[kind], times[KINDS[0]], strict=True)]
        rows.append(Row(what=f"- more, {kind}", unit="%", median=statistics.median(more), goal=GOAL_PERCENT))
    return rows


def commit_rows(owner_id: int, commits: int) -> list[Row]:
    """Measure small transactions of one person that commit at the same time."""
    names = list(AgentInstance.objects.filter(owner_id=owner_id).values_list("pk", flat=True)[:WRITERS])

    def write(instance_id: str) -> None:
        for number in range(commits):
            AgentInstance.objects.filter(pk=instance_id).update(title=f"title {number}")
        connection.close()

    rows = []
    for kind in KINDS:
        prepare(kind, owner_id)
        threads = [threading.Thread(target=write, args=(name,)) for name in names]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        each = (time.perf_counter() - began) / (commits * len(threads)) * 1e3
        rows.append(Row(what=f"a change in {len(threads)} conversations at once, {kind}", unit="ms each", median=each))
    return rows


def read_rows(owner_id: int, rounds: int) -> list[Row]:
    """Measure the reading of pages."""
    found = []
    floor = FeedHead.objects.values_list("floor", flat=True).get(pk=owner_id)
    for _ in range(rounds):
        began = time.process_time()
        read_changes(owner_id, floor)
        found.append((time.process_time() - began) * 1e3)
    return [row("read 500 changes, the processor's time here", "ms", found)]


async def measure(*, is_smoke: bool) -> list[Row]:
    """Measure all, on one database."""
    owner_id = (await db(lambda: User.objects.create_user("bench"))).pk
    return [
        *await turn_rows(owner_id, SMOKE_ROUNDS if is_smoke else ROUNDS, SMOKE_BLOCK if is_smoke else BLOCK),
        *await db(commit_rows, owner_id, SMOKE_COMMITS if is_smoke else COMMITS),
        *await db(read_rows, owner_id, SMOKE_ROUNDS if is_smoke else ROUNDS),
    ]


def run(options: Options) -> list[Row]:
    """Measure; returns the table's rows."""
    settings.THINK_FIBER_DISPATCH = "manual"
    settings.THINK_TURNS_PER_MINUTE = 0
    logging.disable(logging.INFO)
    with database(), hot_log(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(is_smoke=options.is_smoke))


def main() -> None:
    """Measure and print the table."""
    print(table([(f"The change feed ({connection.vendor})", run(Options()))]))


if __name__ == "__main__":
    main()
