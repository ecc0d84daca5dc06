"""Browsers of one worker: how many at a time, and those that are kept for the next call of their conversation.

A kept browser is stopped between two calls: its pages do nothing meanwhile. It belongs to one user's conversation with
one agent, in this worker: in another worker that conversation begins with a new one. Durability: none.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

from tools_app.browser.conf import browser_settings
from tools_app.browser.errors import BrowserGone, BrowserUnavailable
from tools_app.browser.session import BrowserContext
from tools_app.errors import SandboxUnavailable, ToolError
from tools_app.sandbox.slots import FairSlots, SlotLimits

Open: TypeAlias = Callable[[], Awaitable[BrowserContext]]
"""Opens a session. Errors: `BrowserUnavailable`."""

SWEEP_SECONDS: Final = 5.0
BUSY: Final = "Too many browsers are at work at the moment. Try again later."
TOO_SLOW: Final = "The browser was ended: the call took more than {seconds:g} s."


@dataclass(eq=False)
class Pool:
    """The browsers of one event loop."""

    slots: FairSlots
    kept: dict[str, BrowserContext] = field(default_factory=dict)
    _locks: "WeakValueDictionary[str, asyncio.Lock]" = field(default_factory=WeakValueDictionary)
    _sweeping: "asyncio.Task[None] | None" = None
    _closing: set["asyncio.Task[None]"] = field(default_factory=set)

    @asynccontextmanager
    async def session(self, open_it: Open, *, share: str, key: str = "") -> AsyncIterator[BrowserContext]:
        """A session for one call. `share`: whose calls count together. `key`: keeps it, and finds what was kept.

        Calls with the same key wait for each other. A call that takes too long, or is cancelled, ends its browser.
        Errors: `BrowserUnavailable`; `BrowserGone` where the browser ended under the call.
        """
        lock = self._locks.setdefault(key, asyncio.Lock()) if key else asyncio.Lock()
        seconds = browser_settings.limits.queue_seconds
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(seconds):
                    await stack.enter_async_context(lock)
                    await stack.enter_async_context(self.slots.slot(share))
            except (TimeoutError, SandboxUnavailable) as error:
                raise BrowserUnavailable(BUSY) from error
            session = await self._taken(key) or await open_it()
            try:
                async with _bounded(session):
                    yield session
            except BaseException as error:
                is_alive = session.is_alive
                await (
                    self._keep(key, share, session) if is_alive and isinstance(error, Exception) else session.close()
                )
                if isinstance(error, ToolError) and not is_alive:
                    raise BrowserGone(session.connection.end_reason) from error
                raise
            await self._keep(key, share, session)

    async def close(self) -> None:
        """End all kept browsers."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        while self.kept:
            await self.kept.popitem()[1].close()
        await asyncio.gather(*self._closing)

    async def _taken(self, key: str) -> BrowserContext | None:
        session = self.kept.pop(key, None)
        if session is None:
            return None
        session.resume()
        if session.is_alive:
            return session
        await session.close()
        return None

    async def _keep(self, key: str, share: str, session: BrowserContext) -> None:
        if not key or not session.is_alive:
            await session.close()
            return
        session.pause()
        session.share = share
        self.kept[key] = session
        await self._drop(
            [each for each in self.kept if self.kept[each].share == share], browser_settings.limits.kept_per_user
        )
        await self._drop(list(self.kept), browser_settings.limits.kept)
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.create_task(self._sweep())

    async def _drop(self, keys: list[str], most: int) -> None:
        """End those of these browsers that were idle longest, beyond a number."""
        oldest = sorted(keys, key=lambda each: self.kept[each].last_used)
        for key in oldest[: max(0, len(keys) - max(0, most))]:
            if key in self.kept:
                await self.kept.pop(key).close()

    async def _sweep(self) -> None:
        """End browsers that were not used for a while, until there are none."""
        while self.kept:
            idle = browser_settings.limits.idle_seconds
            oldest = min(session.last_used for session in self.kept.values())
            await asyncio.sleep(min(SWEEP_SECONDS, max(0.01, oldest + idle - time.monotonic())))
            for key, session in list(self.kept.items()):
                if session.last_used + idle <= time.monotonic() or not session.is_alive:
                    self.kept.pop(key, None)
                    self._close_apart(session)

    def _close_apart(self, session: BrowserContext) -> None:
        """End a browser in a task of its own, which goes on when the caller is cancelled."""
        task = asyncio.create_task(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


@asynccontextmanager
async def _bounded(session: BrowserContext) -> AsyncIterator[None]:
    """Errors: `BrowserGone` after too long, when the browser has been ended."""
    seconds = browser_settings.limits.seconds
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        session.end(TOO_SLOW.format(seconds=seconds))
        await session.close()
        raise BrowserGone(session.connection.end_reason) from None


browser_runs: Final = FairSlots(
    lambda: SlotLimits(
        total=browser_settings.limits.runs,
        per_share=browser_settings.limits.runs_per_user,
        seconds=browser_settings.limits.queue_seconds,
    )
)
"""The policy of browsers: a number for a process, and a smaller one for each user."""

_POOLS: WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = WeakKeyDictionary()


def pool() -> Pool:
    """The pool of this event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _POOLS:
        _POOLS[loop] = Pool(browser_runs)
    return _POOLS[loop]
