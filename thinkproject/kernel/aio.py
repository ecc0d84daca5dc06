"""The one bridge between async core and sync services.

`await db(service, ...)` runs sync ORM code on a small executor of its own, so that database connections are bounded
per process (one per executor thread). `await user_code(fn, ...)` runs a developer's sync hook or tool on *another*
executor: one slow `requests.get` there must not starve leases. User code has its connections closed after each call,
the bridge closes those that became unusable or too old.
"""

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections, connections

P = ParamSpec("P")
R = TypeVar("R")

DB_THREADS = 8
USER_THREADS = 32

_db_executor = ThreadPoolExecutor(DB_THREADS, thread_name_prefix="think-db")
_user_executor = ThreadPoolExecutor(USER_THREADS, thread_name_prefix="think-user")


async def db(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a sync service or selector off the loop, on the bounded database executor."""
    return await _run(_db_executor, close_old_connections, function, *args, **kwargs)


async def user_code(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a developer's sync hook or tool off the loop, apart from the database bridge; connections closed after."""
    return await _run(_user_executor, connections.close_all, function, *args, **kwargs)


async def _run(
    executor: ThreadPoolExecutor,
    cleanup: Callable[[], None],
    function: Callable[P, R],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> R:
    context = contextvars.copy_context()
    call = functools.partial(function, *args, **kwargs)

    def run() -> R:
        try:
            return context.run(call)
        finally:
            cleanup()

    return await asyncio.get_running_loop().run_in_executor(executor, run)
