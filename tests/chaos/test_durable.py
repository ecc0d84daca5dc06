"""Durable work of every kind while everything is killed: agents, executors, effects too. `durable.rules` judges."""

import asyncio
import json
import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chat.client import ChatClient
from tests.acceptance.product import Product, wait_for
from tests.chaos.driver import database_of
from tests.chaos.durable import rules
from tests.chaos.durable.driver import Score, environ_of, play
from tests.chaos.durable.evidence import gather
from tests.chaos.durable.postgres import OwnPostgres
from tests.chaos.evidence import query

IS_LONG = os.environ.get("TEST_CHAOS") == "long"  # make chaos
SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
KILLS = int(os.environ.get("CHAOS_KILLS") or (60 if IS_LONG else 8))
KILL_SECONDS = float(os.environ.get("CHAOS_KILL_SECONDS") or 1.0)
ROOMS = int(os.environ.get("CHAOS_ROOMS") or 4)
REQUESTS = int(os.environ.get("CHAOS_TURNS") or (200 if IS_LONG else 16))


@pytest.fixture
def postgres() -> Iterator[OwnPostgres | None]:
    """A server of this run's own, where PostgreSQL is tested."""
    if os.environ.get("TEST_DATABASE") != "postgres":
        yield None
        return
    server = OwnPostgres()
    yield server
    server.close()


@pytest.mark.chaos
@pytest.mark.timeout(7200 if IS_LONG else 600)
def test_durable_work_outlives_every_process(
    make_product: Callable[..., Product], postgres: OwnPostgres | None, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    environ = environ_of(ledger) | ({"DATABASE_URL": postgres.address} if postgres else {})
    product = make_product(webs=2, workers=3, database="sqlite", environ=environ)
    sys.stdout.write(f"seed {SEED}\n")
    score = Score(requests=REQUESTS, seed=SEED, min_kills=KILLS, rooms=ROOMS, kill_every=KILL_SECONDS)
    world = asyncio.run(play(product, score, ledger, postgres=postgres))
    kept = Path(os.environ.get("CHAOS_KEEP") or tmp_path) / "world.json"
    kept.write_text(json.dumps(world), encoding="utf-8")
    lines = rules.broken(world)
    sys.stdout.write(f"{figures(world)}\n")
    assert lines == [], "\n".join([figures(world), *lines, f"the world is in {kept}"])
    assert world["kills"]


def figures(world: dict[str, Any]) -> str:
    """One line for `docs/reliability.md`."""
    names = [f"{kill['name']}{'*' if kill['how'] == 'freeze' else ''}" for kill in world["kills"]]
    counts = ", ".join(f"{name} {names.count(name)}" for name in sorted(set(names)))
    gaps = rules.takeovers(world)
    took = f"p50 {rules.percentile(gaps, 0.5):.1f} s, p99 {rules.percentile(gaps, 0.99):.1f} s" if gaps else "none"
    ticks = sum(line["what"] == "tick" for line in world["ledger"])
    return (
        f"seed {world['seed']}: {len(world['asked'])} requests, {len(world['turns'])} turns, {ticks} ticks in "
        f"{world['seconds']:.0f} s; {len(names)} faults ({counts}; * stopped for longer than the lease); "
        f"takeover of {len(gaps)} fibers while another worker lived: {took}"
    )


QUICK = {"THINK_FIBER_LEASE_SECONDS": "2", "THINK_FIBER_HEARTBEAT_SECONDS": "0.5", "THINK_FIBER_SWEEP_SECONDS": "0.5"}
HELD = "select worker, attempt, status from think_fibers_fiber where name = 'chat.turn'"


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_two_workers_that_both_believe_they_hold_a_lease_are_fenced(
    make_product: Callable[..., Product], tmp_path: Path
) -> None:
    """One stands still in the middle of an answer, another takes over, the first goes on: its writes do not count."""
    ledger = tmp_path / "ledger.jsonl"
    product = make_product(workers=2, database="sqlite", environ=environ_of(ledger) | QUICK)
    address = database_of(product)

    def held() -> tuple[str, int, str]:
        [(worker, attempt, status)] = query(address, HELD)
        return str(worker), int(attempt), str(status)

    async def answer() -> str:
        url, token = product.url(""), product.token("alice")
        async with ChatClient(url, agent="chaos-clerk", name="fenced", token=token) as chat:
            turn = await chat.send("marker: fenced\nstream 150 words at 25/s")
            async for _ in turn.texts():
                break
            holder = held()[0]
            [worker] = [each for each in product.workers if str(each.pid) in re.findall(r"\d+", holder)]
            with worker.paused():
                await asyncio.to_thread(wait_for, lambda: held()[1] == 2, what="another worker taking over")
                assert held()[0] != holder
            text = "".join(part["text"] for part in (await turn.message())["parts"] if part["type"] == "text")
            await asyncio.to_thread(wait_for, lambda: "lease" in worker.log, what="the first one noticing")
            return text

    text = asyncio.run(answer())
    words = text.split()
    assert (len(words), len(set(words))) == (150, 150)
    assert held()[1:] == (2, "completed")
    stored = [message for message in gather(address, ledger)["messages"] if message["role"] == "assistant"]
    assert [message["text"] for message in stored] == [text]
