"""Runs of this process, in memory only; the lease in the row is authoritative."""

import os
import secrets
import socket
import threading
import time
from typing import Protocol

from fibers.core.states import Interrupt

SIGNAL_SECONDS = 5.0


class Running(Protocol):
    """A fiber that runs in this process."""

    fiber_id: str
    fence: int

    @property
    def progress(self) -> int:
        """Settled steps and shown chunks so far."""

    def interrupt(self, kind: Interrupt) -> None:
        """Stop the function. From any thread, any number of times."""


class RunRegistry:
    """The running fibers of this process by id. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, Running] = {}
        self._signalled: dict[str, float] = {}
        self.is_closing = False

    def add(self, run: Running) -> bool:
        """Take a run in. Returns True when an interrupt for it came while it was being claimed."""
        with self._lock:
            self._runs[run.fiber_id] = run
            return self._signalled.pop(run.fiber_id, None) is not None

    def remove(self, run: Running) -> None:
        """Take a run out, unless a newer run of the same fiber has its place."""
        with self._lock:
            if self._runs.get(run.fiber_id) is run:
                del self._runs[run.fiber_id]

    def signalled(self, fiber_id: str) -> Running | None:
        """Return the run that an interrupt is for. One for a fiber that is being claimed is remembered for a moment."""
        now = time.monotonic()
        with self._lock:
            self._signalled = {key: at for key, at in self._signalled.items() if now - at < SIGNAL_SECONDS}
            run = self._runs.get(fiber_id)
            if run is None:
                self._signalled[fiber_id] = now
            return run

    def snapshot(self) -> list[Running]:
        """All runs of this moment."""
        with self._lock:
            return list(self._runs.values())


registry = RunRegistry()


class _Identity:
    """Name of this process. A fork gets a name of its own."""

    def __init__(self) -> None:
        self._pid = 0
        self._name = ""

    def name(self) -> str:
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._name = f"{socket.gethostname()[:60]}:{self._pid}:{secrets.token_hex(4)}"
        return self._name


_identity = _Identity()


def worker_name() -> str:
    """Name under which this process holds leases: host, process id, and noise, so that no two are ever equal."""
    return _identity.name()
