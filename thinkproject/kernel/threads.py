"""Threads for developers' sync code: a pool for hooks and one for tools, each with a share for one user.

A thread cannot be ended from outside. A call that was given up (a timeout, a stopped turn) keeps its thread until the
function returns, so what is counted is running functions, not waiting callers. A caller that gets no thread in time
fails: a turn that waited in silence would keep its lease for ever.
"""

import asyncio
import contextlib
import contextvars
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from django.db import connections

from thinkproject.kernel.conf_kernel import thread_settings
from thinkproject.kernel.errors import Saturated

R = TypeVar("R")
WAIT_SECONDS = 15.0  # for a thread, before code fails as saturated

_acting_for: contextvars.ContextVar[object | None] = contextvars.ContextVar("think_acting_for", default=None)


@contextlib.contextmanager
def acting_for(user: object | None) -> Iterator[None]:
    """Count threads used within this block against this user."""
    token = _acting_for.set(user)
    try:
        yield
    finally:
        _acting_for.reset(token)


def act_for(user: object | None) -> None:
    """Count the threads of the rest of this task as this user's."""
    _acting_for.set(user)


class _Slot(Executor):
    """One thread of a pool: given back when its call has ended, and also when that is cancelled before it begins."""

    def __init__(self, threads: Executor, give_back: Callable[[], None]) -> None:
        self._threads = threads
        self._give_back = give_back

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> "Future[R]":
        """Start a call on the thread."""
        future = self._threads.submit(fn, *args, **kwargs)
        future.add_done_callback(lambda _future: self._give_back())
        return future


class ThreadPool:
    """Bounded threads for one kind of code, and for one user's. Both are read when a call comes: settings hold at once.

    `share`: 0 for no limit.
    """

    def __init__(self, kind: str, size: Callable[[], int], share: Callable[[], int] | None = None) -> None:
        self.kind = kind
        self._size = size
        self._share = share or (lambda: thread_settings.threads_per_user)
        self._executor = ThreadPoolExecutor(1000, thread_name_prefix=f"think-{kind}")  # bounded by the count below
        self._lock = threading.Lock()
        self._running = 0
        self._by_user: Counter[object] = Counter()
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    @property
    def is_saturated(self) -> bool:
        """Whether a call would have to wait for a thread."""
        return self._running >= self._size()

    async def run(self, function: Callable[[], R]) -> R:
        """Call a function on a thread, in the caller's context; its database connections are closed afterwards.

        Errors: `Saturated` without a thread in time; what the function raises.
        """
        user = _acting_for.get()
        await self._take(user)
        context = contextvars.copy_context()

        def call() -> R:
            try:
                return context.run(function)
            finally:
                connections.close_all()

        give_back = partial(self._give_back, user)
        try:
            future = asyncio.get_running_loop().run_in_executor(_Slot(self._executor, give_back), call)
        except RuntimeError:  # the interpreter is going down
            give_back()
            raise
        return await future

    async def _take(self, user: object | None) -> None:
        waiter = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not self._try_take(user, waiter):
                    await waiter[1].wait()
                    waiter[1].clear()
        except TimeoutError:
            raise Saturated(
                f"No thread for {self.kind}s became free within {WAIT_SECONDS:g} s.",
                kind=self.kind,
                threads=self._size(),
            ) from None
        finally:
            with self._lock:
                self._waiting.discard(waiter)

    def _try_take(self, user: object | None, waiter: tuple[asyncio.AbstractEventLoop, asyncio.Event]) -> bool:
        most = self._share()
        with self._lock:
            has_room = user is None or most <= 0 or self._by_user[user] < most
            if self._running < self._size() and has_room:
                self._running += 1
                if user is not None:
                    self._by_user[user] += 1
                return True
            self._waiting.add(waiter)
            return False

    def _give_back(self, user: object | None) -> None:
        with self._lock:
            self._running -= 1
            if user is not None:
                self._by_user[user] -= 1
                if not self._by_user[user]:
                    del self._by_user[user]
            waiting = list(self._waiting)
        for loop, event in waiting:
            with contextlib.suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(event.set)


hooks = ThreadPool("hook", lambda: thread_settings.hook_threads)
tools = ThreadPool("tool", lambda: thread_settings.tool_threads)
