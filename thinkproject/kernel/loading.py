"""Loading of modules that need a large package: when they are needed, once in a process, and off the loop."""

import asyncio
from importlib import import_module

_loaded: set[str] = set()


async def load(name: str) -> None:
    """Import a module on a thread, so that sockets and streams go on meanwhile."""
    if name not in _loaded:  # in `sys.modules` it would be as well while another thread still reads it
        await asyncio.to_thread(import_module, name)
        _loaded.add(name)
