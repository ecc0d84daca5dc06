"""An event loop that knows when nothing moves, and whose clock only tests move.

Everything a chat server does here happens on this loop or on the threads of the database bridge, whose calls it
counts. So a test need not wait for a time in which "surely" everything has come: it goes on when nothing is left to
come. Timers (polls, timeouts) stand still until `pass_time`.
"""

import asyncio
from collections.abc import Callable
from typing import Any

PASSES = 3  # a timer of no delay needs one to become ready and one to run


class QuietLoop(asyncio.SelectorEventLoop):
    """Counts calls that are on other threads; its time is virtual."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 1000.0
        self._away = 0
        self._back: asyncio.Future[None] | None = None

    def time(self) -> float:
        """The time, which stands still by itself."""
        return self._now

    monotonic = time

    def run_in_executor(  # type: ignore[override]  # the types of its arguments do not matter here
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run a call on another thread, and know of it."""
        self._away += 1
        future: asyncio.Future[Any] = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._came_back)
        return future

    def _came_back(self, _future: asyncio.Future[Any]) -> None:
        self._away -= 1
        if self._away == 0 and self._back is not None and not self._back.done():
            self._back.set_result(None)

    async def quiet(self) -> None:
        """Return when nothing is ready to run and no call is on another thread."""
        still = 0
        while still < PASSES:
            if self._away:
                self._back = self.create_future()
                await self._back
            await asyncio.sleep(0)
            still = 0 if self._away or self._ready else still + 1  # type: ignore[attr-defined]  # BaseEventLoop's own

    async def pass_time(self, seconds: float) -> None:
        """Move the clock, timer by timer, each followed by all that comes of it."""
        until = self._now + seconds
        await self.quiet()
        while (timer := self._next_timer()) is not None and timer <= until:
            self._now = max(self._now, timer)
            await self.quiet()
        self._now = until
        await self.quiet()

    def _next_timer(self) -> float | None:
        timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        return min(timers, default=None)


class JumpingLoop(QuietLoop):
    """Moves its clock by itself: to the next timer, whenever nothing is ready and no call is on another thread.

    So a test sleeps as long as it likes, takes no time, and goes the same way on a busy machine. For what talks to
    nothing outside of its loop: sockets and other processes are not waited for.
    """

    def _run_once(self) -> None:
        is_idle = not self._ready and not self._away  # type: ignore[attr-defined]  # BaseEventLoop's own
        if is_idle and (timer := self._next_timer()) is not None:
            self._now = max(self._now, timer)
        super()._run_once()  # type: ignore[misc]  # as above
