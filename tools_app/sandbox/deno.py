"""The sandbox of this product: Deno without permissions, a fresh process for every run, one started in advance.

Which walls stand around the process is tried once for each event loop, strongest first, by starting a guest.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import cast
from weakref import WeakKeyDictionary

from tools_app.errors import SandboxUnavailable
from tools_app.sandbox.contract import DEFAULT_LIMITS, CallHandler, Limits, RunResult, Script
from tools_app.sandbox.process import JAVASCRIPT, Guest, NotStarted, SandboxProgram, start
from tools_app.sandbox.session import SandboxSession
from tools_app.sandbox.slots import FairSlots, sandbox_runs
from tools_app.sandbox.walls import Wall, Walls, allowed_to_lack, candidates, names

logger = logging.getLogger(__name__)

REFUSED = (
    "Code cannot run here: a wall is missing ({walls}), and THINK_SANDBOX_MAY_LACK does not say that code may run "
    "without. `manage.py think_doctor` says more."
)


@dataclass(eq=False)
class _State:
    """The processes of a sandbox on one event loop."""

    walls: Walls | None = None
    spare: Guest | None = None
    spare_limits: Limits | None = None
    warming: "asyncio.Task[None] | None" = None
    trying: asyncio.Lock = field(default_factory=asyncio.Lock)
    running: set[Guest] = field(default_factory=set)


class DenoSandbox:
    """Runs scripts in Deno. One object serves a whole process; each event loop has its own spare.

    `spare`: whether a process is started in advance after each run (about 40 MB, 15 to 30 ms saved). `slots`: the
    policy that bounds runs; the sandboxes of a process share one.
    """

    def __init__(
        self,
        *,
        program: SandboxProgram = JAVASCRIPT,
        spare: bool = True,
        slots: FairSlots = sandbox_runs,
    ) -> None:
        self._program = program
        self._wants_spare = spare
        self.slots = slots
        self._states: WeakKeyDictionary[asyncio.AbstractEventLoop, _State] = WeakKeyDictionary()

    async def run(
        self, script: Script, *, calls: CallHandler, limits: Limits = DEFAULT_LIMITS, share: str = ""
    ) -> RunResult:
        """Run a script once; see `contract.Sandbox`."""
        state = self._state()
        async with self.slots.slot(share):
            guest = await self._guest(state, limits)
            state.running.add(guest)
            try:
                return await SandboxSession(guest, calls, limits).run(script)
            finally:
                guest.kill()
                await guest.end()
                state.running.discard(guest)
                self._warm(state, limits)

    async def close(self) -> None:
        """End the spare process of this event loop, and what starts one."""
        state = self._state()
        if state.warming is not None:
            state.warming.cancel()
            await asyncio.gather(state.warming, return_exceptions=True)
        if state.spare is not None:
            await state.spare.end()
        state.spare = state.warming = None

    @property
    def running(self) -> list[int]:
        """Process ids of the runs of this event loop."""
        return [guest.pid for guest in self._state().running]

    async def warmed(self) -> None:
        """Wait until the spare process is there, where one is being started."""
        warming = self._state().warming
        if warming is not None:
            await warming

    async def walls(self) -> Walls:
        """The walls around guests here. Errors: `SandboxUnavailable`."""
        state = self._state()
        if state.walls is None:
            await (await self._fresh(state, DEFAULT_LIMITS)).end()
        return cast("Walls", state.walls)  # starting a guest has found them

    def _state(self) -> _State:
        loop = asyncio.get_running_loop()
        if loop not in self._states:
            self._states[loop] = _State()
        return self._states[loop]

    async def _guest(self, state: _State, limits: Limits) -> Guest:
        spare, state.spare = state.spare, None
        if spare is not None:
            if spare.is_alive and state.spare_limits == limits:
                return spare
            await spare.end()
        return await self._fresh(state, limits)

    async def _fresh(self, state: _State, limits: Limits) -> Guest:
        async with state.trying:
            if state.walls is None:
                return await self._first(state, limits)
        return await start(state.walls, limits, self._program)

    async def _first(self, state: _State, limits: Limits) -> Guest:
        """Start a guest behind the strongest walls that can be had here, and keep to them. Errors: as `walls`."""
        allowed = allowed_to_lack()
        error, refused = NotStarted(), frozenset[Wall]()
        for walls in candidates():
            if missing := walls.lacks - allowed:
                refused = refused or missing  # of the strongest
                continue
            try:
                guest = await start(walls, limits, self._program)
            except NotStarted as failure:  # one that is slow is no reason for weaker walls
                facts = {"action": "sandbox_walls", "walls": walls.name, "reason": failure.message}
                logger.warning("sandbox: these walls cannot be had here: %s", walls.name, extra=facts)
                error = failure
                continue
            state.walls = walls
            return guest
        if refused:
            raise SandboxUnavailable(REFUSED.format(walls=names(refused))) from error
        raise error

    def _warm(self, state: _State, limits: Limits) -> None:
        if self._wants_spare and state.spare is None and (state.warming is None or state.warming.done()):
            state.warming = asyncio.create_task(self._start_spare(state, limits))

    async def _start_spare(self, state: _State, limits: Limits) -> None:
        try:
            guest = await self._fresh(state, limits)
        except SandboxUnavailable as error:
            logger.warning("sandbox: no spare process", exc_info=error, extra={"action": "sandbox_spare"})
            return
        state.spare, state.spare_limits = guest, limits
