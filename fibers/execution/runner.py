"""Run fibers: claim, run, settle, and drain the lane again after the commit that completes.

The function runs as an asyncio task of the loop this is awaited on; a worker process has one such loop
(`worker_loop.py`). An interrupt (cancel, shutdown, lost lease) cancels that task; the function gets a moment to put its
things in order and is then abandoned, which is safe because whatever it still writes carries a fence that no longer
holds.
"""

import asyncio
import logging
import random

from django.db import OperationalError

from fibers import context as contexts
from fibers.context import FiberContext
from fibers.core.states import FiberEvent, FiberStatus, Interrupt
from fibers.errors import Cancelled, Failed, GivenUp, LeaseLost, Parked
from fibers.process.heartbeat import heartbeat
from fibers.process.runs import registry, worker_name
from fibers.queue import leases
from fibers.queue.dispatch import forget_dispatch
from fibers.queue.leases import Settlement
from fibers.registry import DurableFunction, find_durable, get_durable, served_names
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONValue, dump
from thinkproject.kernel.retry import RetryPolicy
from thinkproject.kernel.threads import act_for

logger = logging.getLogger(__name__)

SETTLE = RetryPolicy(first_seconds=0.25, max_seconds=4.0)
SETTLE_TRIES = 4
CALLBACK_SECONDS = 10.0
GRACE_SECONDS = 5.0  # that an interrupted function gets to put its things in order


async def run_fiber(fiber_id: str) -> None:
    """Run this fiber if it can be claimed, then whatever may run next in its lane, until nothing is left.

    **Durability:** safe to call any number of times, from any process: who loses the claim does nothing. When the
    fiber itself may not run yet, what stands before it in its lane is run.
    """
    following: str | None = fiber_id
    while following is not None:
        if registry.is_closing:
            await db(forget_dispatch, [following])
            return
        context = await _claim(following)
        if context is not None:
            if await _run(context):
                continue  # it may try again at once
            following = None if context.lane is None else await db(_next_in_lane, context.lane)
        elif following != fiber_id:
            return  # another worker drains this lane
        else:
            following = await db(_next_claimable, following)


def _next_in_lane(lane: str) -> str | None:
    return leases.next_in_lane(lane, names=served_names())


def _next_claimable(fiber_id: str) -> str | None:
    return leases.next_claimable(fiber_id, names=served_names())


async def _claim(fiber_id: str) -> FiberContext | None:
    """Claim a fiber and begin its function in one transaction. A function that cannot begin fails as it runs."""
    claiming = asyncio.ensure_future(db(_claim_and_begin, fiber_id))
    try:
        await asyncio.wait({claiming})
    except asyncio.CancelledError:
        await asyncio.wait({claiming})  # its transaction goes on in a thread
        context = None if claiming.exception() else claiming.result()
        if context is not None:  # our caller stops: nothing would run it before its lease has run out
            await _settle(context, Settlement(event=FiberEvent.HAND_BACK, progress=context.progress, reason="shutdown"))
        raise
    error = claiming.exception()
    if not isinstance(error, Exception):
        return claiming.result()
    extra = {"action": "fiber_not_begun", "fiber_id": fiber_id, "error": type(error).__name__}
    logger.warning("fiber claimed without its begin", extra=extra)
    claim = await db(lambda: leases.claim(fiber_id, worker_name(), names=served_names()))
    return None if claim is None else FiberContext(claim)


def _claim_and_begin(fiber_id: str) -> FiberContext | None:
    context: FiberContext | None = None

    def begin(claim: leases.Claim) -> None:
        nonlocal context
        context = FiberContext(claim)
        entry = find_durable(context.name)
        if entry is not None and entry.begin is not None:
            context.begun = entry.begin(context)

    won = leases.claim(fiber_id, worker_name(), begin, names=served_names())
    return context if won is not None else None


class Run:
    """One attempt in this process: the target of the heartbeat and of interrupts."""

    def __init__(self, context: FiberContext) -> None:
        self.fiber_id = context.fiber_id
        self.fence = context.fence
        self.context = context
        self.task: asyncio.Task[JSONValue] | None = None
        self._loop = asyncio.get_running_loop()
        self._interrupted = asyncio.Event()

    @property
    def progress(self) -> int:
        """Settled steps and shown chunks so far."""
        return self.context.progress

    def interrupt(self, kind: Interrupt) -> None:
        """Stop the function, from any thread. A second reason is ignored, but for a lost lease."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.stop, kind)

    def stop(self, kind: Interrupt) -> None:
        """Stop the function. On the loop."""
        first = self.context.interrupt
        if self.task is None or self.task.done() or first is kind or self.context.ended_as is not None:
            return
        if first is not None and kind is not Interrupt.LEASE_LOST:
            return
        self.context.interrupt = kind
        self.task.cancel()
        self._interrupted.set()

    def start(self, function: DurableFunction) -> "asyncio.Task[JSONValue]":
        """Start the function. Its first line runs before any interrupt can reach it."""
        self.task = asyncio.create_task(self._call(function), name=self.fiber_id)
        return self.task

    async def wait(self) -> None:
        """Wait until the function has ended, or was interrupted and has had its time."""
        assert self.task is not None
        interrupted = asyncio.create_task(self._interrupted.wait())
        try:
            await asyncio.wait({self.task, interrupted}, return_when=asyncio.FIRST_COMPLETED)
            if not self.task.done():
                await asyncio.wait({self.task}, timeout=GRACE_SECONDS)
        finally:
            interrupted.cancel()

    async def _call(self, function: DurableFunction) -> JSONValue:
        contexts.enter(self.context)
        act_for(self.context.owner_id)
        self.context.passed(contexts.BEGINS)
        result = await function(self.context)
        self.context.passed(contexts.RETURNED)
        return result


async def _run(context: FiberContext) -> bool:
    """Run one attempt to its end; tell whether the next one begins at once."""
    run = Run(context)
    run.start(get_durable(context.name).function)
    was_signalled = registry.add(run)
    heartbeat.ensure()
    try:
        await _watch(run, was_signalled=was_signalled)
        if context.ended_as is not None:
            if not _has_died(run):
                await _note_end(context, context.ended_as)
            return False
        settlement = _settlement(run)
        status = None if settlement is None else await _settle(context, settlement)
    finally:
        registry.remove(run)
    tries_at_once = settlement is not None and settlement.event is FiberEvent.RETRY and not settlement.delay_seconds
    return tries_at_once and status is FiberStatus.PENDING


async def _watch(run: Run, *, was_signalled: bool) -> None:
    if registry.is_closing:
        run.interrupt(Interrupt.SHUTDOWN)
    if was_signalled:
        run.interrupt(Interrupt.CANCEL)
    try:
        await run.wait()
    except asyncio.CancelledError:
        run.stop(Interrupt.SHUTDOWN)  # our caller stops: hand the fiber back, as a worker would
        await run.wait()


async def _settle(context: FiberContext, settlement: Settlement) -> FiberStatus | None:
    """Write the end. What cannot be written is left to recovery: the lease runs out."""
    for attempt in range(SETTLE_TRIES):
        try:
            status = await db(leases.settle, context.fiber_id, context.fence, settlement)
        except LeaseLost:
            logger.info("fiber lease lost", extra={"action": "fiber_lease_lost", "fiber_id": context.fiber_id})
            return None
        except OperationalError:
            logger.exception("fiber not settled", extra={"action": "fiber_unsettled", "fiber_id": context.fiber_id})
            await asyncio.sleep(SETTLE.delay_seconds(attempt + 1, jitter=0.0))
            continue
        await _note_end(context, status)
        return status
    return None


async def _note_end(context: FiberContext, status: FiberStatus) -> None:
    logger.info(
        "fiber settled",
        extra={"action": "fiber_settled", "fiber_id": context.fiber_id, "durable": context.name, "status": status},
    )
    await _call_back(context, status)


async def _call_back(context: FiberContext, status: FiberStatus) -> None:
    for callback in context.settled_callbacks:
        task = asyncio.ensure_future(callback(status))
        await asyncio.wait({task}, timeout=CALLBACK_SECONDS)
        error = TimeoutError() if task.cancel() or task.cancelled() else task.exception()
        if error is not None:
            extra = {"action": "fiber_callback", "fiber_id": context.fiber_id}
            logger.error("fiber callback failed", exc_info=error, extra=extra)


def _has_died(run: Run) -> bool:
    """Whether the function ended with what is no end of a function but of its process."""
    task = run.task
    if task is None or not task.done() or task.cancelled():
        return False
    error = task.exception()
    return error is not None and not isinstance(error, Exception)


def _settlement(run: Run) -> Settlement | None:
    """Read the end of the task. None: write nothing, the lease is lost or decides."""
    task, context = run.task, run.context
    assert task is not None
    if context.interrupt is Interrupt.LEASE_LOST:
        task.cancel()
        return None
    if not task.done():
        task.cancel()
        logger.error("fiber abandoned", extra={"action": "fiber_abandoned", "fiber_id": context.fiber_id})
        return _interrupted(context)
    if task.cancelled():
        return _interrupted(context)
    error = task.exception()
    if error is not None:
        return _from_error(context, error)
    try:
        result = task.result()
        dump(result)
    except (TypeError, ValueError) as unencodable:
        return _failure(
            context, "result_invalid", f"the result is not JSON: {unencodable}", is_final=True, ended_itself=True
        )
    return Settlement(event=FiberEvent.COMPLETE, progress=context.progress, result=result)


def _from_error(context: FiberContext, error: BaseException) -> Settlement | None:
    if isinstance(error, Cancelled):
        if context.interrupt is Interrupt.SHUTDOWN:
            return _interrupted(context)
        return Settlement(
            event=FiberEvent.CANCEL, progress=context.progress, result=error.result, reason=error.reason[:64]
        )
    if isinstance(error, Parked):
        return Settlement(event=FiberEvent.PARK, progress=context.progress, reason=error.reason[:64], waits=error.waits)
    if isinstance(error, GivenUp):
        return Settlement(
            event=FiberEvent.SEAL, progress=context.progress, reason=error.reason[:64], ended_itself=False
        )
    if isinstance(error, LeaseLost):
        return None
    if not isinstance(error, Exception):
        logger.error("fiber dropped", exc_info=error, extra={"action": "fiber_drop", "fiber_id": context.fiber_id})
        return None  # not an end of the function but of us: the lease runs out, recovery decides
    if context.interrupt is not None:
        return _interrupted(context)
    # What was foreseen needs no traceback: its code and its words say what happened.
    extra = {"action": "fiber_error", "fiber_id": context.fiber_id, "error": str(error)[: leases.ERROR_CHARACTERS]}
    logger.warning("fiber failed", exc_info=None if isinstance(error, ThinkError) else error, extra=extra)
    if isinstance(error, Failed):
        return _failure(context, error.error_code, error.message, is_final=error.is_final, ended_itself=True)
    return _failure(context, *leases.words_of(error))


def _interrupted(context: FiberContext) -> Settlement:
    match context.interrupt:
        case Interrupt.CANCEL:
            return Settlement(event=FiberEvent.CANCEL, progress=context.progress, ended_itself=False)
        case Interrupt.SHUTDOWN:
            return Settlement(event=FiberEvent.HAND_BACK, progress=context.progress, reason="shutdown")
        case _:
            return _failure(context, "cancelled_itself", "the function cancelled its own task")


def _failure(
    context: FiberContext, code: str, message: str, *, is_final: bool = False, ended_itself: bool = False
) -> Settlement:
    failures = context.retries + 1
    will_retry = not is_final and failures <= context.max_retries
    # The jitter spreads load; nothing secret hangs on it.
    jitter = random.random()  # noqa: S311 - not cryptography
    pauses = will_retry and not get_durable(context.name).retries_at_once
    return leases.failed(
        code,
        message,
        will_retry=will_retry,
        delay_seconds=(context.retry_policy or leases.RETRY).delay_seconds(failures, jitter=jitter) if pauses else 0.0,
        progress=context.progress,
        ended_itself=ended_itself,
    )
