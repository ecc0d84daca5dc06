"""Durable work while everything is killed: approvals, code, sub-agents, schedules, effects. `durable.rules` judges."""

import asyncio
import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.product import Product
from tests.chaos.durable import rules
from tests.chaos.durable.driver import Score, environ_of, play
from tests.chaos.durable.postgres import OwnPostgres

IS_LONG = os.environ.get("TEST_CHAOS") == "long"  # make chaos
SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
KILLS = int(os.environ.get("CHAOS_KILLS") or (60 if IS_LONG else 8))
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
    product = make_product(webs=2, workers=2, database="sqlite", environ=environ)
    sys.stdout.write(f"seed {SEED}\n")
    score = Score(requests=REQUESTS, seed=SEED, min_kills=KILLS)
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
        f"takeover of {len(gaps)} fibers: {took}"
    )
