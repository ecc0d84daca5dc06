"""Effects of querysets by themselves: what a thousand of them cost at rest, and what a thousand rows cost one of them.

    python -m bench.effects              (SQLite)
    TEST_DATABASE=postgres python -m bench.effects

One process and one event loop, without a broker, as in `bench.durable`.
"""

import asyncio
import logging
import os
import time
from functools import partial
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
django.setup()

from django.conf import settings  # noqa: E402 - after the set-up
from django.contrib.auth.models import User  # noqa: E402 - after the set-up
from django.db.models import QuerySet  # noqa: E402 - after the set-up

from bench.durable import timed  # noqa: E402 - after the set-up
from bench.rig import Options  # noqa: E402 - after the set-up
from bench.rows import Row, milliseconds, row, table  # noqa: E402 - after the set-up
from bench.sessions import database  # noqa: E402 - after the set-up
from fibers.core.states import FiberStatus  # noqa: E402 - after the set-up
from fibers.effects.declaring import create_effect  # noqa: E402 - after the set-up
from fibers.effects.looking import look  # noqa: E402 - after the set-up
from fibers.effects.registered import effects  # noqa: E402 - after the set-up
from fibers.execution.recovery import sweep  # noqa: E402 - after the set-up
from fibers.models import EffectState, Fiber  # noqa: E402 - after the set-up
from fibers.testing import run_until_idle  # noqa: E402 - after the set-up
from thinkproject.kernel.aio import db  # noqa: E402 - after the set-up

EFFECTS, SMOKE_EFFECTS = 1_000, 30
ROWS, SMOKE_ROWS = 1_000, 20
ROUNDS, SMOKE_ROUNDS = 7, 3
LIMIT_SECONDS = 600.0


def nothing(_event: Any) -> None:
    """Do nothing."""


def look_first() -> None:
    """Have each note what is there."""
    for effect in effects():
        look(effect)


def look_at_all() -> None:
    """Look at each of them, as sweeps do within fifteen seconds."""
    for effect in effects():
        look(effect, is_primed=True)


def save_one() -> None:
    """Save a row that no effect wants: what the hint takes is all that it costs."""
    User.objects.get_or_create(username="saved")[0].save()


def with_status(status: str) -> "QuerySet[User]":
    """Rows of one effect."""
    return User.objects.filter(first_name=status)


async def entering(count: int) -> list[Row]:
    """Measure rows that all enter one effect at once."""
    effect = create_effect("bench.enter", lambda: User.objects.filter(first_name="new"), on_enter=nothing)
    users = [User(username=f"new {at}", first_name="new") for at in range(count)]
    await db(User.objects.bulk_create, users, batch_size=1_000)
    began = time.perf_counter()
    found = await db(look, effect)
    looking = time.perf_counter() - began
    began = time.perf_counter()
    await run_until_idle(timeout_seconds=LIMIT_SECONDS)
    running = time.perf_counter() - began
    done = await db(lambda: Fiber.objects.filter(status=FiberStatus.COMPLETED).count())
    await effect.dispose()
    return [
        Row(
            what=f"find {count:,} rows that entered, and store their work", unit="ms each", median=looking / count * 1e3
        ),
        Row(what="- and run it", unit="ms each", median=running / count * 1e3),
        Row(
            what="events that were lost or doubled",
            unit="events",
            median=abs(count - done) + abs(count - found),
            goal=0,
        ),
    ]


async def resting(count: int, rounds: int) -> list[Row]:
    """Measure many effects to which nothing happens."""
    alone = create_effect("bench.alone", lambda: User.objects.filter(first_name="alone"), on_enter=nothing)
    saving = milliseconds(await timed(save_one, rounds))
    await alone.dispose()
    for number in range(count):
        create_effect(f"bench.{number}", partial(with_status, f"e{number}"), on_enter=nothing, skip_initial=True)
    users = [User(username=f"{at}", first_name=f"e{at % count}") for at in range(10 * count)]
    await db(User.objects.bulk_create, users, batch_size=1_000)
    await db(look_first)
    await run_until_idle(timeout_seconds=LIMIT_SECONDS)
    looks = milliseconds(await timed(look_at_all, max(1, rounds // 7)))
    await db(EffectState.objects.update, due_at="2100-01-01T00:00:00Z")
    idle = milliseconds(await timed(sweep, rounds))
    many = milliseconds(await timed(save_one, rounds))
    for effect in effects():
        await effect.dispose()
    return [
        row("save a row that one effect watches", "ms", saving),
        row(f"save a row that {count:,} effects watch", "ms", many),
        row(f"a sweep where none of {count:,} effects is due", "ms", idle),
        row(f"a look at each of {count:,} effects, 10 rows in each (once in 15 s)", "ms", looks),
    ]


def run(options: Options) -> list[Row]:
    """Measure everything in a database of its own."""
    settings.THINK_FIBER_DISPATCH = "manual"
    logging.disable(logging.WARNING)
    smoke = options.is_smoke

    async def measure() -> list[Row]:
        found = await entering(SMOKE_ROWS if smoke else ROWS)
        return [*found, *await resting(SMOKE_EFFECTS if smoke else EFFECTS, SMOKE_ROUNDS if smoke else ROUNDS)]

    with database():
        return asyncio.run(measure())


if __name__ == "__main__":
    print(table([("Effects of querysets", run(Options()))]))
