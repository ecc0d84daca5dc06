"""Slots for runs: a number for a process, and a smaller one for each user, whose further runs wait for their first.

One object is the policy of one resource. All code of models shares `sandbox_runs`, whichever tool runs it: `execute`,
`bash` and Python. Commands in real processes have their own (`tools_app.processes.tool.process_runs`).
"""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from tools_app.errors import SandboxUnavailable
from tools_app.sandbox.conf import sandbox_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotLimits:
    """Limits of a policy. `seconds`: how long a run waits for its slot before it fails."""

    total: int
    per_share: int
    seconds: float


@dataclass(eq=False, slots=True)
class _Waiting:
    share: str
    loop: asyncio.AbstractEventLoop
    turn: asyncio.Future[None]
    is_served: bool = False


@dataclass(eq=False, slots=True)
class _Held:
    """A slot that is held, and the one slot within it."""

    slots: "FairSlots"
    inner: "FairSlots"
    is_over: bool = False


_HELD: ContextVar[tuple[_Held, ...]] = ContextVar("held_slots", default=())


class FairSlots:
    """Slots of a whole process, its threads included, given in the order of arrival; a share that is used up waits.

    A run that another run of the same policy has started (code that calls `bash`) uses the slot of that one, one such
    run at a time: the outer run waits for it meanwhile, and a slot of its own could be one that its like are holding.
    """

    def __init__(self, limits: Callable[[], SlotLimits]) -> None:
        self._read_limits = limits
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._waiting: deque[_Waiting] = deque()

    @property
    def limits(self) -> SlotLimits:
        """The limits of this moment."""
        return self._read_limits()

    @property
    def running(self) -> int:
        """Runs that hold a slot, those within another one not counted."""
        return self._running.total()

    @asynccontextmanager
    async def slot(self, share: str) -> AsyncIterator[None]:
        """Hold a slot; "" is a share without a limit. Errors: `SandboxUnavailable` when none was free in time."""
        outer = next((held for held in reversed(_HELD.get()) if held.slots is self and not held.is_over), None)
        if outer is not None:
            async with outer.inner.slot(share):
                yield
            return
        await self._acquire(share)
        held = _Held(slots=self, inner=FairSlots(self._limits_within))
        token = _HELD.set((*_HELD.get(), held))
        try:
            yield
        finally:
            held.is_over = True  # a task that outlives the run has its slot no longer
            _HELD.reset(token)
            self._release(share)

    def _limits_within(self) -> SlotLimits:
        return SlotLimits(total=1, per_share=1, seconds=self.limits.seconds)

    async def _acquire(self, share: str) -> None:
        loop = asyncio.get_running_loop()
        waiting = _Waiting(share, loop, loop.create_future())
        with self._lock:
            self._waiting.append(waiting)
        self._serve()
        try:
            async with asyncio.timeout(self.limits.seconds):
                await waiting.turn
        except BaseException as error:
            with self._lock:
                was_served = waiting.is_served
                if waiting in self._waiting:
                    self._waiting.remove(waiting)
            if was_served:  # and given up in the same moment
                self._release(share)
            if isinstance(error, TimeoutError):
                raise SandboxUnavailable("Too much code runs at the moment. Try again later.") from error
            raise

    def _release(self, share: str) -> None:
        with self._lock:
            self._running[share] -= 1
            if not self._running[share]:
                del self._running[share]
        self._serve()

    def _serve(self) -> None:
        """Give what is free to those who wait. A loop that was closed without its tasks wants nothing any more."""
        limits = self.limits
        with self._lock:
            kept: deque[_Waiting] = deque()
            for waiting in self._waiting:
                has_room = self._running.total() < limits.total
                if not has_room or (waiting.share and self._running[waiting.share] >= limits.per_share):
                    kept.append(waiting)
                elif _woken(waiting):
                    self._running[waiting.share] += 1
                    waiting.is_served = True
            self._waiting = kept


def _woken(waiting: _Waiting) -> bool:
    try:
        waiting.loop.call_soon_threadsafe(_tell, waiting.turn)
    except RuntimeError:  # closed
        return False
    return True


def _tell(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


sandbox_runs = FairSlots(
    lambda: SlotLimits(
        total=sandbox_settings.limits.runs,
        per_share=sandbox_settings.limits.runs_per_user,
        seconds=sandbox_settings.limits.queue_seconds,
    )
)
"""The policy of code of models in this process."""
