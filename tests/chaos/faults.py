"""What goes wrong in a chaos run: processes are killed and connections cut, at random, from a seed."""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.acceptance.product import Process, Product
from tests.acceptance.proxy import CuttingProxy

CHUNK_SECONDS = 3.0
START_SECONDS = 60.0


class RandomProxy(CuttingProxy):
    """A proxy that can also cut one connection of many."""

    def cut_one(self, choice: float) -> int:
        """Reset the connection at this part (0 to 1) of those that are open. Returns how many were cut."""

        def act() -> int:
            pairs = sorted(self._pairs, key=id)
            if not pairs:
                return 0
            pair = pairs[int(choice * len(pairs)) % len(pairs)]
            for writer in pair:
                writer.transport.abort()
            self._pairs.discard(pair)
            self.cuts += 1
            return 1

        return self._call(act)


class Faults:
    """Kills and cuts until it is asked to stop. Each kill waits for a chunk to go by, so that it hits an answer."""

    def __init__(
        self,
        product: Product,
        proxy: RandomProxy,
        dice: random.Random,
        chunks: Callable[[], int],
        every: tuple[float, float],
    ) -> None:
        self.kills: list[dict[str, Any]] = []
        self._product = product
        self._proxy = proxy
        self._dice = dice
        self._chunks = chunks
        self._every = every
        self._tasks: Sequence[asyncio.Task[None]] = ()

    @property
    def cuts(self) -> int:
        """Connections cut so far."""
        return self._proxy.cuts

    def begin(self) -> None:
        """Start making trouble."""
        self._tasks = [asyncio.create_task(self._kill_now_and_then()), asyncio.create_task(self._cut_now_and_then())]

    async def end(self) -> None:
        """Stop making trouble and wait until everything runs again."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._product.wait_until_ready)

    async def kill(self, process: Process) -> None:
        """Kill one process and start it again at once."""
        self.kills.append({"at": time.time(), "what": process.name.rstrip("0123456789"), "name": process.name})
        # On this thread: children die with the thread that started them.
        process.restart()
        await asyncio.sleep(0)

    async def _kill_now_and_then(self) -> None:
        product = self._product
        while True:
            await asyncio.sleep(self._dice.uniform(*self._every))  # faults come when they like
            kinds = [product.workers, product.webs, [product.redis]]
            process = self._dice.choice(self._dice.choices(kinds, weights=[4, 3, 2])[0])
            before, deadline = self._chunks(), time.monotonic() + CHUNK_SECONDS
            more = self._dice.randint(1, 12)
            while self._chunks() < before + more and time.monotonic() < deadline:  # noqa: ASYNC110 - clients know of no faults
                await asyncio.sleep(0.005)
            await self.kill(process)

    async def _cut_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._dice.uniform(0.5, 2.5))  # as above
            if self._dice.random() < 0.1:
                self._proxy.cut()
            else:
                self._proxy.cut_one(self._dice.random())
