"""Two workers, cancels, clears, lost leases and renewals at once: one lock order, so no deadlock."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, connections
from django.db.backends.utils import CursorWrapper
from django.db.utils import OperationalError

from chat.errors import ChatError
from chat.models import Turn
from chat.reads.snapshots import is_final
from chat.streams.logs.log import close_logs
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Submit
from chat.turns.admission.stop import cancel_turn, clear_instance
from fibers.execution import recovery
from fibers.models import Fiber
from fibers.testing import expire_lease, worker
from sessions_app.core.messages.shapes import NewMessage
from tests.db.chat.turns.agents import gated  # noqa: F401 - serves the agent named below

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)

ROOMS, TURNS, WORKERS = 8, 15, 2
SECONDS = 90.0
DEADLOCK = "40P01"


@pytest.fixture
def deadlocks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Statements of any thread that the database ended because they waited for each other."""
    found: list[str] = []
    execute = CursorWrapper.execute

    def noted(self: CursorWrapper, sql: str, params: Any = None) -> Any:
        try:
            return execute(self, sql, params)
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", "") == DEADLOCK:
                found.append(sql)
            raise

    monkeypatch.setattr(CursorWrapper, "execute", noted)
    return found


class Crowd:
    """What goes on at the same time, each in a thread of its own, until everything has ended."""

    def __init__(self, rooms: list[Room]) -> None:
        self.rooms = rooms
        self.is_over = threading.Event()
        self.done: Counter[str] = Counter()

    def work(self, _seed: int) -> None:
        """Be a worker: a loop of its own, so a group of commits of its own."""

        async def run() -> None:
            async with worker():
                await asyncio.to_thread(self.is_over.wait)
            await close_logs()

        asyncio.run(run())

    def stop_turns(self, seed: int) -> None:
        """Stop one turn or another, running or queued."""

        def stop(dice: random.Random) -> None:
            newest = list(Turn.objects.order_by("-pk").values_list("pk", flat=True)[:ROOMS])
            if newest:
                cancel_turn(dice.choice(newest))

        self._repeat("stopped", seed, stop, 0.1)

    def clear(self, seed: int) -> None:
        """Clear one conversation or another."""
        self._repeat("cleared", seed, lambda dice: clear_instance(dice.choice(self.rooms).key), 0.03)

    def lose_leases(self, seed: int) -> None:
        """Have a turn taken over while the one that ran it still writes."""

        def lose(dice: random.Random) -> None:
            running = list(Fiber.objects.filter(status="running").values_list("pk", flat=True))
            if running:
                expire_lease(dice.choice(running))
            recovery.sweep(prune=False)

        self._repeat("lost", seed, lose, 0.1)

    def say_more(self, seed: int) -> None:
        """Admit turns while others run."""
        for number in range(TURNS * ROOMS):
            if self.is_over.wait(0.02):
                break
            with suppress(ChatError):
                say(self.rooms[number % ROOMS], number)
                self.done["said"] += 1
        self._leave()

    def _repeat(self, name: str, seed: int, action: Callable[[random.Random], object], pause: float) -> None:
        dice = random.Random(seed)
        while not self.is_over.wait(pause * dice.uniform(0.2, 1.8)):
            with suppress(ChatError):
                action(dice)
                self.done[name] += 1
        self._leave()

    def _leave(self) -> None:
        connections.close_all()


def say(room: Room, number: int) -> None:
    message: NewMessage = {"role": "user", "parts": [{"type": "text", "text": f"stream {number % 20} words at 200/s"}]}
    admit(room.key, TurnRequest(intake=Submit(message=message)))


@pytest.mark.parametrize("agent", ["plain", "latest"])  # what supersedes locks the fibers of others
async def test_there_is_no_deadlock(make_room: MakeRoom, settings: Any, deadlocks: list[str], agent: str) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    settings.THINK_TURNS_PER_MINUTE = 0
    settings.THINK_STREAM_COLD_SECONDS = 0.03
    settings.THINK_FIBER_HEARTBEAT_SECONDS = 0.05
    settings.THINK_FIBER_DISPATCH = "manual"
    rooms = [make_room(agent, name=f"room{number}") for number in range(ROOMS)]
    crowd = Crowd(rooms)
    parts = [crowd.work] * WORKERS + [crowd.say_more, crowd.stop_turns, crowd.clear, crowd.lose_leases]
    await asyncio.to_thread(_run, crowd, parts)
    assert deadlocks == []
    assert min(crowd.done[name] for name in ("said", "stopped", "cleared", "lost")) > 5
    assert await asyncio.to_thread(_left_over) == []


def _run(crowd: Crowd, parts: Sequence[Callable[[int], None]]) -> None:
    with ThreadPoolExecutor(len(parts)) as pool:
        running = [pool.submit(part, seed) for seed, part in enumerate(parts)]
        said = running[WORKERS]
        try:
            said.result(SECONDS)
            for _ in range(int(SECONDS * 10)):
                if not _busy():
                    break
                threading.Event().wait(0.1)  # between two looks
        finally:
            crowd.is_over.set()
        for part in running:
            part.result(SECONDS)
    connections.close_all()


def _busy() -> bool:
    return Fiber.objects.filter(finished_at=None).exists()


def _left_over() -> list[str]:
    """What ended and is not over: nothing."""
    try:
        ended = Turn.objects.filter(fiber__status__in=("completed", "cancelled", "failed", "interrupted"))
        rows = [turn for turn in ended.select_related("fiber") if not is_final(turn.pk) or turn.finished_at is None]
        return [f"{turn.pk} {turn.fiber.status} {turn.fiber.reason} {turn.fiber.attempt}" for turn in rows]
    finally:
        connections.close_all()
