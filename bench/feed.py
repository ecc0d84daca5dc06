"""The change feed: what it adds to a turn while it is closed and while it is open, and what reading it costs.

    python -m bench.feed              (SQLite)
    TEST_DATABASE=postgres python -m bench.feed

One process, a model that answers at once: a turn is what this product does itself. Turns are measured by what the
processor did for them, here and in the database's processes, because others may use the machine. The three kinds take
turns in short blocks.

Two blocks of equal turns differ by more than the feed costs. So its share is the difference of small transactions with
the feed closed and open, the quickest of many blocks each, times the changes that a turn was seen to make.
"""

import asyncio
import logging
import os
import threading
import time
from pathlib import Path

import django
import uvloop

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
django.setup()

from django.conf import settings  # noqa: E402 - after the set-up
from django.contrib.auth.models import User  # noqa: E402 - after the set-up
from django.db import connection, transaction  # noqa: E402 - after the set-up
from django.db.models import F  # noqa: E402 - after the set-up

from bench.durable import hot_log  # noqa: E402 - after the set-up
from bench.rig import Options  # noqa: E402 - after the set-up
from bench.rows import Row, row, table  # noqa: E402 - after the set-up
from bench.sessions import database  # noqa: E402 - after the set-up
from chat.feed import triggers  # noqa: E402 - after the set-up
from chat.feed.reading import open_feed, read_changes  # noqa: E402 - after the set-up
from chat.llm.scripted import ScriptedModel  # noqa: E402 - after the set-up
from chat.models import AgentInstance, FeedChange, FeedHead, Turn  # noqa: E402 - after the set-up
from chat.think import InstanceKey, Think  # noqa: E402 - after the set-up
from chat.turns.admission.admit import TurnRequest, admit  # noqa: E402 - after the set-up
from chat.turns.admission.intake import Submit  # noqa: E402 - after the set-up
from fibers.execution.runner import run_fiber  # noqa: E402 - after the set-up
from sessions_app.models import Message, Session  # noqa: E402 - after the set-up
from thinkproject.kernel.aio import db  # noqa: E402 - after the set-up

ROUNDS, SMOKE_ROUNDS = 8, 1
BLOCK, SMOKE_BLOCK = 40, 3
WARM_UP = 12  # turns after which PostgreSQL plans nothing anew
WRITERS, COMMITS, SMOKE_COMMITS = 8, 150, 5
SMALL_BLOCKS, SMOKE_SMALL_BLOCKS = 40, 2
SMALL_BLOCK = 150
CHANGES = 3  # of a small transaction
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


async def turn_rows(owner_id: int, rounds: int, block: int) -> tuple[list[Row], float]:
    """Measure turns of each kind; also returns how many changes one of them makes."""
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    changes = 0
    for number in range(rounds):
        for kind in KINDS:
            await db(prepare, kind, owner_id)
            key = InstanceKey(owner_id=owner_id, agent=BenchFeed.route_name(), name=f"{kind} {number}")
            await turns(key, WARM_UP)
            before = await db(FeedChange.objects.count)
            times[kind].append(await turns(key, block))
            changes += await db(FeedChange.objects.count) - before
    return [
        row(f"the processor's time for a turn, {kind}", "ms", times[kind]) for kind in KINDS
    ], changes / rounds / block


def share_rows(owner_id: int, blocks: int, of_turn: float, changes_of_turn: float) -> list[Row]:
    """Measure small transactions of one connection, and what their changes would be of a turn of so many ms."""
    turn_id = Turn.objects.filter(instance__owner_id=owner_id).values_list("pk", flat=True)[0]
    message = Message.objects.filter(session__owner_id=owner_id)[0]

    def write(number: int) -> None:
        with transaction.atomic():
            Turn.objects.filter(pk=turn_id).update(delivery=("queue", "steer")[number % 2])
            Message.objects.filter(pk=message.pk).update(change_seq=F("change_seq") + 1)
            Session.objects.filter(pk=message.session_id).update(name=f"name {number}")

    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(blocks):
        for kind, measured in times.items():
            prepare(kind, owner_id)
            for number in range(WARM_UP):
                write(number)
            pids = backends()
            began = processor_ms(pids)
            for number in range(SMALL_BLOCK):
                write(number)
            measured.append((processor_ms(pids) - began) / SMALL_BLOCK)
    bare, *withs = (min(measured) for measured in times.values())
    costs = {kind: (quickest - bare) / CHANGES for kind, quickest in zip(KINDS[1:], withs, strict=True)}
    rows = [row(f"the processor's time for {CHANGES} changes, {kind}", "ms", times[kind]) for kind in times]
    rows.append(Row(what="changes of a turn", unit="", median=changes_of_turn))
    for kind, each in costs.items():
        rows.append(Row(what=f"one change more, {kind}, quickest blocks", unit="us", median=each * 1e3))
        percent = 100 * each * changes_of_turn / of_turn
        rows.append(Row(what=f"- more for a turn, {kind}", unit="%", median=percent, goal=GOAL_PERCENT))
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
    of_turns, changes = await turn_rows(
        owner_id, SMOKE_ROUNDS if is_smoke else ROUNDS, SMOKE_BLOCK if is_smoke else BLOCK
    )
    blocks = SMOKE_SMALL_BLOCKS if is_smoke else SMALL_BLOCKS
    return [
        *of_turns,
        *await db(share_rows, owner_id, blocks, of_turns[0].median, changes),
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
