"""The lifecycle of a runner, whatever woke it: a task, a schedule, an alarm, a webhook, or code in this process.

    async def work(session):
        result = await drain_until_idle(session, has_pending_work=..., run_cycle=...)
        await session.complete(done=result.completed)

    await run_with_lifecycle(Wake(id=fiber_id, runner="mirror"), FiberLeaseAdapter(), work)

Claim, heartbeat, checkpoint, and then either complete or fail: these five are all that a transport supplies. A claim
that is refused runs nothing. The token of a claim fences every later step: a runner that was taken for dead writes
nothing.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fibers.core.cursors import Checkpoint
from fibers.errors import FiberStopped, LeaseLost
from thinkproject.kernel.jsonvalue import JSONObject

R = TypeVar("R")
FenceToken = int | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """A reason to run. `id`: what can be claimed once at a time; `runner`: whose checkpoints it advances."""

    id: str
    runner: str
    payload: JSONObject = field(default_factory=dict)


class RunnerLifecycleAdapter:
    """The part that a transport supplies. Only `claim_wake` has to be; the other steps do nothing by default."""

    heartbeat_seconds: float = 3.0
    """How often a claim is renewed while its handler runs: at most a third of what a claim lasts."""

    async def claim_wake(self, wake: Wake, *, signal: asyncio.Event) -> FenceToken:
        """Take the wake, atomically, and give its fence. Errors: `WakeRejected` when it is stale or claimed."""
        raise NotImplementedError

    async def heartbeat(self, wake: Wake, fence: FenceToken) -> None:
        """Renew the claim. Errors: `LeaseLost`; `FiberStopped` when the work is to stop."""

    async def checkpoint(self, wake: Wake, fence: FenceToken, checkpoints: Sequence[Checkpoint]) -> None:
        """Store how far the runner is. Errors: `CheckpointRegression`, `LeaseLost`; then nothing was stored."""

    async def complete(self, wake: Wake, fence: FenceToken, *, done: bool) -> None:
        """End the claim. `done=False`: there is more work, and the runner may be woken at once. Errors: `LeaseLost`."""

    async def fail(self, wake: Wake, fence: FenceToken, error: BaseException) -> None:
        """End the claim with an error; the transport wakes it again as it sees fit. Errors: `LeaseLost`."""


class RunnerSession:
    """A claimed wake, as its handler holds it. `signal`: set when the work is to stop or the claim is lost."""

    def __init__(
        self, wake: Wake, adapter: RunnerLifecycleAdapter, fence_token: FenceToken, signal: asyncio.Event
    ) -> None:
        self.wake = wake
        self.fence_token = fence_token
        self.signal = signal
        self.is_settled = False  # completed or failed
        self._adapter = adapter
        self._lost = False

    async def heartbeat(self) -> None:
        """Renew the claim now; it is renewed by itself, too.

        Errors: `LeaseLost`, `FiberStopped`; then `signal` is set.
        """
        self._check()
        try:
            await self._adapter.heartbeat(self.wake, self.fence_token)
        except (LeaseLost, FiberStopped) as error:
            self._lost = self._lost or isinstance(error, LeaseLost)
            self.signal.set()
            raise

    async def checkpoint(self, *checkpoints: Checkpoint) -> None:
        """Store how far the runner is. Errors: `CheckpointRegression`, `LeaseLost`."""
        self._check()
        if checkpoints:
            await self._fenced(self._adapter.checkpoint(self.wake, self.fence_token, checkpoints))

    async def complete(self, *, done: bool) -> bool:
        """End the claim; false where it has ended already. Errors: `LeaseLost`."""
        if self.is_settled:
            return False
        self._check()
        self.is_settled = True
        await self._fenced(self._adapter.complete(self.wake, self.fence_token, done=done))
        return True

    async def fail(self, error: BaseException) -> bool:
        """End the claim with an error; false where it has ended already. Errors: `LeaseLost`."""
        if self.is_settled:
            return False
        self._check()
        self.is_settled = True
        await self._fenced(self._adapter.fail(self.wake, self.fence_token, error))
        return True

    def _check(self) -> None:
        if self._lost:
            raise LeaseLost

    async def _fenced(self, step: Awaitable[None]) -> None:
        try:
            await step
        except LeaseLost:
            self._lost = True
            self.signal.set()
            raise


async def run_with_lifecycle(
    wake: Wake,
    adapter: RunnerLifecycleAdapter,
    handler: Callable[[RunnerSession], Awaitable[R]],
    *,
    signal: asyncio.Event | None = None,
) -> R:
    """Claim a wake, run the handler under it, and end the claim; gives what the handler gives.

    A handler that returns without having completed or failed leaves more work: `complete(done=False)`. One that raises
    fails the wake, and the error is raised here. The claim is renewed while it runs; a lost one cancels the handler,
    and nothing is settled. A caller that is cancelled hands the wake back.
    **Errors:** `WakeRejected`, and the handler has not run; `LeaseLost`, `FiberStopped`; those of the handler.
    """
    stop = signal or asyncio.Event()
    fence = await adapter.claim_wake(wake, signal=stop)
    session = RunnerSession(wake, adapter, fence, stop)
    handling = asyncio.ensure_future(handler(session))
    beating = asyncio.create_task(_beat(session, adapter.heartbeat_seconds, handling))
    beating.add_done_callback(lambda task: task.cancelled() or task.exception())  # it is raised by the handler's side
    try:
        value = await handling
    except asyncio.CancelledError:
        handling.cancel()
        await asyncio.wait({handling})
        beating.cancel()
        ended = await _reason(beating)
        if isinstance(ended, LeaseLost):
            raise ended from None
        if ended is not None:
            await session.fail(ended)
            raise ended from None
        await session.complete(done=False)
        raise
    except LeaseLost:
        raise
    except BaseException as error:
        await session.fail(error)
        raise
    finally:
        beating.cancel()
    await session.complete(done=False)
    return value


async def _beat(session: RunnerSession, seconds: float, handling: "asyncio.Future[Any]") -> None:
    """Renew the claim until it ends; one that is lost or stopped cancels the handler."""
    while True:
        await asyncio.sleep(seconds)
        if session.is_settled:
            return
        try:
            await session.heartbeat()
        except (LeaseLost, FiberStopped):
            if _has_ended(session):  # the end overtook it: whether that held is said there
                return
            handling.cancel()
            raise


def _has_ended(session: RunnerSession) -> bool:
    """Whether the end was said by now."""
    return session.is_settled


async def _reason(beating: "asyncio.Task[None]") -> Exception | None:
    """Why the heartbeat has stopped the handler; nothing where it did not."""
    with contextlib.suppress(asyncio.CancelledError):
        try:
            await beating
        except (LeaseLost, FiberStopped) as error:
            return error
    return None
