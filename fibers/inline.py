"""Run one owner's fibers in this process, where no worker is: for commands.

    async with working_for(user.pk):
        await something_that_starts_fibers()

What it takes it holds by a lease, as a worker does: a real one may run beside it, and whoever claims first wins. Time
is not hurried, and nobody else's fibers are run (`fibers.testing.worker` does both).
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fibers import recovery
from fibers.models import Fiber
from fibers.runner import run_fiber
from thinkproject.kernel.aio import db

SWEEP_SECONDS = 2.0


@asynccontextmanager
async def working_for(owner_id: int | None, *, look_seconds: float = 0.05) -> AsyncIterator[None]:
    """Run the owner's fibers on this loop until the end of the block; what still runs then is handed back."""
    task = asyncio.create_task(_work(owner_id, look_seconds))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _work(owner_id: int | None, look_seconds: float) -> None:
    running: dict[str, asyncio.Task[None]] = {}
    swept_at = -SWEEP_SECONDS
    try:
        while True:
            if time.monotonic() - swept_at >= SWEEP_SECONDS:
                swept_at = time.monotonic()
                await db(recovery.sweep, prune=False)
            for fiber_id in await db(_claimable, owner_id):
                if fiber_id not in running:
                    running[fiber_id] = asyncio.create_task(run_fiber(fiber_id))
            await asyncio.sleep(look_seconds)
            for fiber_id in [known for known, task in running.items() if task.done()]:
                running.pop(fiber_id).result()
    finally:
        for task in running.values():
            task.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)


def _claimable(owner_id: int | None) -> list[str]:
    mine = Fiber.objects.claimable().filter(owner_id=owner_id)
    return list(mine.order_by("available_at", "pk").values_list("pk", flat=True)[:100])
