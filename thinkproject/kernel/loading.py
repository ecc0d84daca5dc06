"""Loading of code: that of a process at its start, and what needs a large package when it is first needed."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

_loaded: set[str] = set()


async def load(name: str) -> None:
    """Import a module on a thread, so that sockets and streams go on meanwhile."""
    if name not in _loaded:  # in `sys.modules` it would be as well while another thread still reads it
        await asyncio.to_thread(import_module, name)
        _loaded.add(name)


@contextmanager
def starting() -> Iterator[None]:
    """Load a process's code in this block, without collections, which take an eighth of that and find next to nothing.

    What was loaded stays, and no later collection looks through it.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
