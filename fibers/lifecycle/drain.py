"""Run cycles of work until none is left, within bounds: the loop of a runner that was woken."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fibers.core.cursors import Checkpoint
from fibers.lifecycle.session import RunnerSession

MAX_ITERATIONS: Final = 50
MAX_SECONDS: Final = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainResult:
    """`completed`: no work is left. `is_stalled`: the last cycle got nothing done, and there is work all the same."""

    completed: bool
    cycles: int
    is_stalled: bool = False


async def drain_until_idle(
    session: RunnerSession,
    *,
    has_pending_work: Callable[[], Awaitable[bool]],
    run_cycle: Callable[[RunnerSession], Awaitable[bool]],
    build_checkpoint: Callable[[], Sequence[Checkpoint]] | None = None,
    max_iterations: int = MAX_ITERATIONS,
    max_seconds: float = MAX_SECONDS,
) -> DrainResult:
    """Run cycles while there is work, and renew the claim and store the checkpoints after each.

    `run_cycle` says whether it got anything done: a cycle that did not is the last, so that what keeps failing is left
    to its next wake and not tried over and over. The bounds are looked at between cycles; a cycle is cut only by
    the session's signal. **Errors:** those of the functions; `LeaseLost`, `FiberStopped`, `CheckpointRegression`.
    """
    began, cycles, is_stalled = time.monotonic(), 0, False
    while not session.signal.is_set() and not is_stalled:
        if cycles >= max_iterations or time.monotonic() - began >= max_seconds or not await has_pending_work():
            break
        progressed = await _cut_by(session.signal, asyncio.ensure_future(run_cycle(session)))
        if progressed is None:
            break
        cycles += 1
        is_stalled = not progressed
        await session.heartbeat()
        if build_checkpoint is not None:
            await session.checkpoint(*build_checkpoint())
    is_left = await has_pending_work()
    return DrainResult(completed=not is_left, cycles=cycles, is_stalled=is_stalled and is_left)


async def _cut_by(signal: asyncio.Event, cycle: "asyncio.Future[bool]") -> bool | None:
    """The answer of the cycle, or nothing where the signal came first: then it was cancelled."""
    stopping: asyncio.Future[bool] = asyncio.create_task(signal.wait())
    try:
        await asyncio.wait({cycle, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if cycle.done():
            return cycle.result()
        cycle.cancel()
        await asyncio.wait({cycle})
        return None
    except asyncio.CancelledError:
        cycle.cancel()
        await asyncio.wait({cycle})
        raise
    finally:
        stopping.cancel()
