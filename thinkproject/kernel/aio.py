"""The bridge between the async core and sync services.

`await db(service, ...)` runs sync ORM code on a small executor of its own, so that database connections are bounded
per process (one per executor thread). `await user_code(fn, ...)` runs a developer's sync hook on threads of its own
(`threads.py`): a slow `requests.get` in a tool must starve neither leases nor hooks. User code has its connections
closed after each call, the bridge closes those that became unusable or old.

`await call_user_code(fn, ...)` calls a developer's function whether it is sync or async; `call_tool_code` does so for
tools, whose threads are others than those of hooks.
"""

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections

from thinkproject.kernel import threads

P = ParamSpec("P")
R = TypeVar("R")

DB_THREADS = 8

_db_executor = ThreadPoolExecutor(DB_THREADS, thread_name_prefix="think-db")


async def db(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a sync service or selector off the loop, on the bounded database executor."""
    context = contextvars.copy_context()
    call = functools.partial(function, *args, **kwargs)

    def run() -> R:
        try:
            return context.run(call)
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(_db_executor, run)


async def user_code(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a developer's sync hook off the loop. Errors: `Saturated` without a thread in time; its own."""
    return await threads.hooks.run(functools.partial(function, *args, **kwargs))


async def call_user_code(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a developer's hook, sync or async, and await an awaitable that it returns. Errors: as `user_code`."""
    return await _call(threads.hooks, function, args, kwargs)


async def call_tool_code(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a developer's tool, sync or async. Errors: as `call_user_code`."""
    return await _call(threads.tools, function, args, kwargs)


async def _call(pool: threads.ThreadPool, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    value = await pool.run(functools.partial(function, *args, **kwargs))
    return await value if inspect.isawaitable(value) else value
