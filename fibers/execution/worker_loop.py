"""The asyncio loop that all fibers of a worker process share, in a thread of its own.

One loop, so that cancelling closes a provider's connection at once, parallel calls are plain asyncio, and one flusher
serves all streams. uvloop where it is installed: it spends about a tenth less.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from importlib import import_module
from importlib.util import find_spec
from typing import TypeVar

R = TypeVar("R")

_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}


def shared_loop() -> asyncio.AbstractEventLoop:
    """Return this process's loop, started on first use. A forked child gets its own."""
    with _lock:
        loop = _loops.get(os.getpid())
        if loop is None or loop.is_closed():
            loop = _new_loop()
            _loops.clear()
            _loops[os.getpid()] = loop
            threading.Thread(target=loop.run_forever, name="think-loop", daemon=True).start()
        return loop


def run_on_shared_loop(coroutine: Coroutine[object, object, R]) -> R:
    """Run a coroutine on the shared loop and wait for it in this thread. Never call it on the loop itself."""
    return asyncio.run_coroutine_threadsafe(coroutine, shared_loop()).result()


def _new_loop() -> asyncio.AbstractEventLoop:
    if find_spec("uvloop") is None:  # Windows
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = import_module("uvloop").new_event_loop()
    return loop
