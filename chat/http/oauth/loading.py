"""Loading of modules that need the protocol's package: most of a second, once in a process, and off the loop."""

import asyncio
import sys
from importlib import import_module


async def load(name: str) -> None:
    """Import a module on a thread, so that sockets and streams go on meanwhile."""
    if name not in sys.modules:
        await asyncio.to_thread(import_module, name)
