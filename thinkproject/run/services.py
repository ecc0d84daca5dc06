"""The processes of Django in `make run`, by name: how many there are, and the command line of each.

`web-1`, `web-2`, … share the listening socket of the supervisor; `worker-1`, `worker-2`, … share the queue. The first
worker sends the periodic tasks as well (Celery's beat, as a thread).
"""

import sys
from typing import Any

from thinkproject.run.counts import Machine, available_memory, core_count, process_count


class Services:
    """The plan of one run. `settings` is the settings module; the file descriptors are inherited by the children."""

    def __init__(self, settings: Any, *, listener: int, gate: int) -> None:
        self.settings = settings
        self.listener = listener
        self.gate = gate
        machine = Machine(cores=core_count(), memory_bytes=available_memory())
        self.webs = _names("web", process_count(settings.WEB_PROCESSES, machine))
        self.workers = _names("worker", process_count(settings.WORKER_PROCESSES, machine))

    @property
    def first(self) -> list[str]:
        """Names of the processes that start first: one of each that a turn needs."""
        return [self.webs[0], self.workers[0]]

    @property
    def further(self) -> list[str]:
        """Names of the processes that start when the first are ready."""
        return [*self.webs[1:], *self.workers[1:]]

    def command(self, name: str) -> list[str]:
        """Return the command line of a process."""
        if name in self.webs:
            words = ["thinkproject.run.server", "--fd", str(self.listener), "--gate", str(self.gate)]
        else:
            words = ["thinkproject.run.gated", "--gate", str(self.gate), *self._beat(name), *self._worker(name)]
        return [sys.executable, "-m", *words]

    def file_descriptors(self, name: str) -> list[int]:
        """Return the file descriptors that a process inherits."""
        return [self.listener, self.gate] if name in self.webs else [self.gate]

    def _beat(self, name: str) -> list[str]:
        return ["--with-beat", str(self.settings.DATA_DIR / "beat-schedule")] if name == self.workers[0] else []

    def _worker(self, name: str) -> list[str]:
        threads = str(self.settings.WORKER_THREADS)
        options = ["--pool", "threads", "--concurrency", threads, "--without-gossip", "--without-mingle"]
        return ["worker", *options, "--without-heartbeat", "--hostname", f"{name}@%h", "--loglevel", "INFO"]


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind}-{number}" for number in range(1, count + 1)]
