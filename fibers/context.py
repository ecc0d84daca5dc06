"""The argument of a durable function: the row's data, the journal, the fence.

Everything it writes carries the fence of its lease. Async methods go off the loop through the one bridge; the sync
ones (`fenced`, `record_in`) are for use inside a function that is itself passed to the bridge.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from django.db import transaction

from fibers.core.budget import read_incident
from fibers.core.journal import Journal, Recorded, normalised
from fibers.core.states import FiberStatus, Interrupt
from fibers.errors import OutsideFiber, Parked, StepMismatch
from fibers.models import Fiber, FiberStep
from fibers.queue import leases
from fibers.waits import RESUMED, Wait, WaitEnd, read_end
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.retry import RetryPolicy
from thinkproject.kernel.statements import Insert

_current: ContextVar["FiberContext | None"] = ContextVar("think_current_fiber", default=None)
_fence: ContextVar[str | None] = ContextVar("think_fence", default=None)

ENDING: Final = "ending"
"""The point inside the transaction that completes a fiber, after its last statement."""

BEFORE: Final = "before:"
"""Begins the point inside the transaction of a record, before it is written."""

BEGINS: Final = "begins"
RETURNED: Final = "returned"
"""The points before the first line of a durable function and after its last one."""

recorded_probes: list[Callable[["FiberContext", str], None]] = []
"""Called after each committed record. For `fibers.testing` alone: this is where a crash is simulated."""

passed_probes: list[Callable[["FiberContext", str], None]] = []
"""Called at points between records (`FiberContext.passed`). For crashes in tests alone, as `recorded_probes`."""


_RECORD: Final = Insert(FiberStep, "fiber_id", "step_key", "value", "attempt", then="ON CONFLICT DO NOTHING")


class FiberContext:
    """One attempt at running one fiber."""

    def __init__(self, claim: leases.Claim) -> None:
        fiber = claim.fiber
        self.fiber_id: str = fiber.pk
        self.name: str = fiber.name
        self.payload: JSONValue = fiber.payload
        self.metadata: JSONValue = fiber.metadata
        self.key = fiber.key
        self.owner_id = fiber.owner_id
        self.lane = fiber.lane
        self.attempt = fiber.attempt
        self.retries = fiber.retries
        self.max_retries = fiber.max_retries
        self.recoveries = fiber.recoveries  # lost leases in a row without progress in between
        self.incident = read_incident(fiber.incident)  # the losses so far, if any
        self.fence = fiber.fence
        self.worker = fiber.worker
        self.interrupt: Interrupt | None = None
        self.stashed: JSONValue = fiber.stash
        self.is_resumed = fiber.reason == RESUMED  # after a wait; nothing was lost
        self.waited_for: list[JSONObject] = fiber.waits if self.is_resumed else []
        self.progress: int = fiber.progress
        self.retry_policy: RetryPolicy | None = None  # the delays of its tries, where the function has its own
        self.begun: Any = None  # what the function's `begin` returned in the transaction of the claim
        self.ended_as: FiberStatus | None = None  # set by the commit of `completing`
        self.settled_callbacks: list[Callable[[FiberStatus], Awaitable[None]]] = []
        self._journal = Journal(claim.entries)
        self._unwritten = _Unwritten(self)

    async def recorded(self, key: str) -> Recorded | None:
        """Return the record of a step, or None when it has to run. No query."""
        return self._journal.find(key)

    def records(self) -> list[tuple[str, JSONValue]]:
        """Return the records of all settled steps, in order. No query."""
        return self._journal.items()

    async def record(self, key: str, value: JSONValue) -> None:
        """Settle a step: insert its record, fenced, in a transaction of its own.

        **Errors:** `LeaseLost`; `StepMismatch` when the key has a record; `TypeError`, `ValueError` for what JSON
        cannot carry.
        """
        await db(self._record, key, value)

    async def step(self, key: str, function: Callable[[], Awaitable[JSONValue]]) -> JSONValue:
        """Return the step's record, or run the step, record its result and return it.

        **Durability:** a crash between the end of `function` and its record runs it again: what it does to the outside
        needs a key of its own, or has to be written with `record_in`.
        """
        known = self._journal.find(key)
        if known is not None:
            return known.value
        value = normalised(await function())
        await self.record(key, value)
        return value

    async def wait(self, wait: Wait) -> WaitEnd:
        """Return how a wait ended, or park until it has: the fiber holds no worker, task or connection meanwhile.

        The function runs again from its beginning, over its journal, and finds the answer here.
        **Errors:** `Parked`, which the function lets through.
        """
        known = self._journal.find(wait.step_key)
        if known is not None:
            return read_end(known.value)
        raise Parked(wait.kind, (wait,))

    def record_in(self, key: str, value: JSONValue) -> None:
        """Settle a step in the transaction of the surrounding `fenced()`, with whatever else is written there."""
        if _fence.get() != self.fiber_id:
            raise OutsideFiber("record_in() works inside `with ctx.fenced()` only")
        self.passed(f"{BEFORE}{key}")
        self._journal.check_new(key)
        value = normalised(value)
        if not _insert_step(self, key, value):
            raise StepMismatch(f"step {key!r} is recorded already")
        transaction.on_commit(lambda: self._note_record(key, value))

    def record_soon(self, key: str, value: JSONValue) -> None:
        """Settle a step with the next fenced transaction of this fiber, whichever that is. No query.

        **Durability:** a crash before that transaction runs the step again. Errors: `StepMismatch`; `TypeError`,
        `ValueError` for what JSON cannot carry.
        """
        self._journal.check_new(key)
        value = normalised(value)
        self._journal.add(key, value)
        self._unwritten.records[key] = value

    @contextmanager
    def fenced(self) -> Iterator[None]:
        """Open a transaction that commits only while this lease holds. Sync. Errors: `LeaseLost`."""
        token = _fence.set(self.fiber_id)
        try:
            with leases.fenced(self.fiber_id, self.fence, self.progress):
                self._unwritten.write()
                yield
        finally:
            _fence.reset(token)

    @contextmanager
    def completing(self, result: JSONValue) -> Iterator[None]:
        """Open the transaction that completes this fiber together with what is written in it. Sync, the last one.

        The function returns after it. Where a cancel was requested before, this is a fenced transaction like others
        and the runner ends the fiber. Errors: `LeaseLost`.
        """
        token = _fence.set(self.fiber_id)
        try:
            with leases.completing(self.fiber_id, self.fence, self.progress, normalised(result)) as is_completed:
                if is_completed:
                    transaction.on_commit(partial(setattr, self, "ended_as", FiberStatus.COMPLETED))
                self._unwritten.write()
                yield
                self.reached(ENDING)
        finally:
            _fence.reset(token)

    def reached(self, key: str) -> None:
        """Name a point that is no step of its own: `fibers.testing` simulates crashes there as after a record."""
        for probe in recorded_probes:
            probe(self, key)

    def passed(self, key: str) -> None:
        """Name a point between records: tests simulate crashes there, and nothing else happens."""
        for probe in passed_probes:
            probe(self, key)

    def advance(self, amount: int = 1) -> None:
        """Count progress: something was shown. Written with the next heartbeat or fenced write."""
        self.progress += amount

    async def stash(self, value: JSONValue) -> None:
        """Replace the fiber's snapshot; the next attempt finds it in `stashed`. Errors: `LeaseLost`."""
        value = normalised(value)
        await db(self._stash, value)
        self.stashed = value

    def on_settled(self, callback: Callable[[FiberStatus], Awaitable[None]]) -> None:
        """Call this after the commit that ends the run, with the status that stands then.

        Best effort: a crash skips it. Also called for a run that was parked, handed back or is to be tried again.
        """
        self.settled_callbacks.append(callback)

    def _record(self, key: str, value: JSONValue) -> None:
        with self.fenced():
            self.record_in(key, value)

    def _stash(self, value: JSONValue) -> None:
        with self.fenced():
            Fiber.objects.filter(pk=self.fiber_id).update(stash=value)

    def _note_record(self, key: str, value: JSONValue) -> None:
        self._journal.add(key, value)
        self.progress += 1
        self.reached(key)


class _Unwritten:
    """Records that go with the next fenced transaction of a fiber."""

    def __init__(self, context: FiberContext) -> None:
        self.records: dict[str, JSONValue] = {}
        self._context = context

    def write(self) -> None:
        """Write them in this transaction; two transactions at the same time write the same."""
        for key, value in list(self.records.items()):
            if _insert_step(self._context, key, value):
                transaction.on_commit(partial(self._note_written, key))

    def _note_written(self, key: str) -> None:
        del self.records[key]
        self._context.advance()
        self._context.reached(key)


def _insert_step(context: FiberContext, key: str, value: JSONValue) -> bool:
    values = {"fiber_id": context.fiber_id, "step_key": key, "value": value, "attempt": context.attempt}
    return bool(_RECORD.run(values))


def current_fiber() -> FiberContext | None:
    """Return the context of the durable function that is running here, if one is."""
    return _current.get()


def enter(context: FiberContext) -> None:
    """Make this the current fiber of the running asyncio task. For the runner."""
    _current.set(context)


async def stash(value: JSONValue) -> None:
    """Replace the snapshot of the fiber that is running here. Errors: `OutsideFiber`."""
    context = _current.get()
    if context is None:
        raise OutsideFiber("stash() called outside a fiber")
    await context.stash(value)
