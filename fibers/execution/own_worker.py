"""Run one owner's fibers in this process, where no worker is: for commands.

    async with working_for(user.pk):
        await something_that_starts_fibers()

What it takes it holds by a lease, as a worker does: a real one may run beside it, and the first to claim wins. Time
is not advanced, and only these fibers are run (`fibers.testing.worker` does both).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from fibers.execution import recovery
from fibers.execution.runner import run_fiber
from fibers.models import Fiber, FiberQuerySet
from fibers.queue.dispatch import notified_of_dispatches
from fibers.registry import served_names
from thinkproject.kernel.aio import db

SWEEP_SECONDS = 2.0
LOOK_SECONDS = 0.05


@asynccontextmanager
async def working_for(owner_id: int | None) -> AsyncIterator[None]:
    """Run the owner's fibers on this loop until the end of the block; what still runs then is handed back."""
    swept_at = -SWEEP_SECONDS

    def look() -> list[str]:
        nonlocal swept_at
        if time.monotonic() - swept_at >= SWEEP_SECONDS:
            swept_at = time.monotonic()
            recovery.sweep(prune=False)
        return first_claimable(Fiber.objects.filter(owner_id=owner_id))

    async with running(look, LOOK_SECONDS):
        yield


@asynccontextmanager
async def running(look: Callable[[], list[str]], look_seconds: float) -> AsyncIterator[None]:
    """Run what `look` finds, side by side, until the end of the block.

    `look` is called on the database bridge: at once when this process dispatches a fiber, and every `look_seconds` for
    what others have started and what has become due.
    """
    task = asyncio.create_task(_work(look, look_seconds))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def first_claimable(fibers: FiberQuerySet) -> list[str]:
    """Ids of fibers that may run now, longest due first."""
    return list(fibers.claimable(served_names()).order_by("available_at", "pk").values_list("pk", flat=True)[:100])


async def _work(look: Callable[[], list[str]], look_seconds: float) -> None:
    tasks: dict[str, asyncio.Task[None]] = {}
    loop, dispatched = asyncio.get_running_loop(), asyncio.Event()
    with notified_of_dispatches(lambda: _set(loop, dispatched)):
        try:
            while True:
                dispatched.clear()
                for fiber_id in await db(look):
                    if fiber_id not in tasks:
                        tasks[fiber_id] = asyncio.create_task(run_fiber(fiber_id))
                with suppress(TimeoutError):
                    async with asyncio.timeout(look_seconds):
                        await dispatched.wait()
                for fiber_id in [known for known, task in tasks.items() if task.done()]:
                    tasks.pop(fiber_id).result()
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)


def _set(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop was closed
        loop.call_soon_threadsafe(event.set)
