"""A lifecycle without a database: the contract of the lifecycle is tested over it, too."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from typing_extensions import override

from fibers.core.cursors import Checkpoint, is_later
from fibers.errors import FiberStopped, LeaseLost, WakeRejected
from fibers.lifecycle.session import FenceToken, RunnerLifecycleAdapter, Wake


@dataclass(slots=True)
class _Claim:
    fence: int
    until: float
    is_stopped: bool = False


class InProcessAdapter(RunnerLifecycleAdapter):
    """Claims in memory. `lease_seconds`: what one lasts without a heartbeat; `wake_again`: called where work is left.

    On one loop. A wake that was done is stale: it cannot be claimed again.
    """

    def __init__(self, *, lease_seconds: float = 10.0, wake_again: Callable[[Wake], None] | None = None) -> None:
        self.heartbeat_seconds = lease_seconds / 3
        self.checkpoints: dict[tuple[str, str], str] = {}  # by runner and source
        self._lease_seconds = lease_seconds
        self._wake_again = wake_again
        self._claims: dict[str, _Claim] = {}
        self._done: set[str] = set()
        self._fence = 0

    @override
    async def claim_wake(self, wake: Wake, *, signal: asyncio.Event) -> FenceToken:
        claim = self._claims.get(wake.id)
        if wake.id in self._done or (claim is not None and claim.until > time.monotonic()):
            raise WakeRejected
        self._fence += 1
        self._claims[wake.id] = _Claim(self._fence, time.monotonic() + self._lease_seconds)
        return self._fence

    @override
    async def heartbeat(self, wake: Wake, fence: FenceToken) -> None:
        claim = self._held(wake, fence)
        claim.until = time.monotonic() + self._lease_seconds
        if claim.is_stopped:
            raise FiberStopped

    @override
    async def checkpoint(self, wake: Wake, fence: FenceToken, checkpoints: Sequence[Checkpoint]) -> None:
        self._held(wake, fence)
        later = [
            each for each in checkpoints if is_later(each.cursor, self.checkpoints.get((wake.runner, each.source)))
        ]
        for each in later:
            self.checkpoints[wake.runner, each.source] = each.cursor

    @override
    async def complete(self, wake: Wake, fence: FenceToken, *, done: bool) -> None:
        self._held(wake, fence)
        del self._claims[wake.id]
        if done:
            self._done.add(wake.id)
        elif self._wake_again is not None:
            self._wake_again(wake)

    @override
    async def fail(self, wake: Wake, fence: FenceToken, error: BaseException) -> None:
        """End the claim; its transport may wake it again."""
        self._held(wake, fence)
        del self._claims[wake.id]

    def expire(self, wake: Wake) -> None:
        """Let a claim look as if its runner had stopped beating."""
        self._claims[wake.id].until = 0.0

    def stop(self, wake: Wake) -> None:
        """Have the runner of a wake stop, with its next heartbeat."""
        self._claims[wake.id].is_stopped = True

    def _held(self, wake: Wake, fence: FenceToken) -> _Claim:
        claim = self._claims.get(wake.id)
        if claim is None or claim.fence != fence:
            raise LeaseLost
        return claim
