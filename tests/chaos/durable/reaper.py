"""Kills one process of many again and again, or lets a worker stand still for longer than its lease, from a seed."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.acceptance.product import Process


class Victim(Protocol):
    """A process that can be killed and started again."""

    name: str

    def restart(self) -> None: ...


@dataclass
class Reaper:
    """`every`: seconds between two kills. `freeze_seconds`: longer than a lease. Units of `kills`: `at` in seconds."""

    victims: Sequence[Victim]
    dice: random.Random
    every: float
    freeze_seconds: float
    freezes: float = 0.1  # the share of a worker's faults
    kills: list[dict[str, Any]] = field(default_factory=list)
    _task: "asyncio.Task[None] | None" = None
    _frozen: set[str] = field(default_factory=set)
    _thaws: "list[asyncio.Task[None]]" = field(default_factory=list)

    def begin(self) -> None:
        """Start."""
        self._task = asyncio.create_task(self._reap())

    def check(self) -> None:
        """Raise what went wrong with a restart, if anything did."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()

    async def end(self) -> None:
        """Stop, and let everything that stands still go on."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await asyncio.gather(*self._thaws)

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(self.every)  # faults come at their pace
            victim = self.dice.choice([each for each in self.victims if each.name not in self._frozen])
            is_worker = isinstance(victim, Process) and victim.name.startswith("worker")
            if is_worker and self.dice.random() < self.freezes:
                self._thaws.append(asyncio.create_task(self._freeze(victim)))  # type: ignore[arg-type]  # as it says
                continue
            pid = victim.pid if isinstance(victim, Process) else 0
            self.kills.append({"at": time.time(), "name": victim.name, "pid": pid, "how": "kill"})
            await asyncio.to_thread(victim.restart)

    async def _freeze(self, worker: Process) -> None:
        """Let a worker believe that it holds its leases, while others take them."""
        self._frozen.add(worker.name)
        pid = worker.pid
        self.kills.append({"at": time.time(), "name": worker.name, "pid": pid, "how": "freeze"})
        os.killpg(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(self.freeze_seconds)  # how long it stands still: the fault
        finally:
            os.killpg(pid, signal.SIGCONT)
            self._frozen.discard(worker.name)
