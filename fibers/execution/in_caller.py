"""Run a function in this process as a fiber: its row exists while it runs, and is gone when it has ended.

What awaits it gets its value or its error. When the process dies the lease runs out, as for any fiber; the row's
durable function and its options (`interrupts_when_lost`, `sealed`) then decide what becomes of it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from django.db import transaction

from fibers.context import FiberContext
from fibers.core.states import FiberEvent, Interrupt
from fibers.errors import FiberError, FiberStopped, LeaseLost
from fibers.execution.runner import Run
from fibers.models import Fiber
from fibers.process.heartbeat import heartbeat
from fibers.process.runs import registry, worker_name
from fibers.queue import leases
from fibers.queue.enqueue import FiberSpec, insert_fiber
from fibers.queue.leases import Settlement
from thinkproject.kernel.aio import db

R = TypeVar("R")


async def run_attached(spec: FiberSpec, function: Callable[[FiberContext], Awaitable[R]]) -> R:
    """Run the function under a lease of this process, and return its value.

    **Errors:** its own; `FiberStopped` when the fiber was cancelled, `LeaseLost` when this process was taken for dead.
    When the caller is cancelled the function is, too.
    """
    context = await db(_open, spec)
    run = Run(context)
    task: asyncio.Task[Any] = run.start(function)
    was_signalled = registry.add(run)
    heartbeat.ensure()
    if was_signalled:
        run.interrupt(Interrupt.CANCEL)
    try:
        await run.wait()
    except asyncio.CancelledError:
        run.stop(Interrupt.SHUTDOWN)
        await run.wait()
        await _leave(context, is_kept=registry.is_closing)
        raise
    finally:
        registry.remove(run)
    if not task.done():
        task.cancel()
    await _leave(context, is_kept=context.interrupt is Interrupt.SHUTDOWN or _has_died(task))
    if context.interrupt is None or (task.done() and not task.cancelled() and task.exception() is None):
        return await task  # type: ignore[no-any-return]  # the function's own
    if context.interrupt is Interrupt.CANCEL:
        raise FiberStopped
    raise LeaseLost


def _has_died(task: "asyncio.Task[Any]") -> bool:
    """Whether the function ended as its process does: in tests, where a crash is simulated."""
    error = task.exception() if task.done() and not task.cancelled() else None
    return error is not None and not isinstance(error, Exception)


def _open(spec: FiberSpec) -> FiberContext:
    """Insert and claim at once: no other worker ever sees it waiting."""
    with transaction.atomic():
        fiber = insert_fiber(spec)
        claim = leases.claim(fiber.pk, worker_name())
        if claim is None:
            raise FiberError("a fiber with this id or key is there already")
    return FiberContext(claim)


async def _leave(context: FiberContext, *, is_kept: bool) -> None:
    """Delete the row; one that was cut by the end of the process is left for what recovers it."""
    if context.interrupt is Interrupt.LEASE_LOST:
        return
    if is_kept and context.interrupt is Interrupt.SHUTDOWN:
        await db(_hand_back, context)
    elif not is_kept:
        await db(Fiber.objects.held(context.fiber_id, context.fence).delete)


def _hand_back(context: FiberContext) -> None:
    settlement = Settlement(event=FiberEvent.HAND_BACK, progress=context.progress, reason="shutdown")
    leases.settle(context.fiber_id, context.fence, settlement)
