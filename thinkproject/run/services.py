"""The processes of Django in `make run`, by name: how many there are, and the command line of each.

`web-1`, `web-2`, … share the listening socket of the supervisor; `worker-1`, `worker-2`, … share the queue; there is
one `beat`.
"""

import sys
from typing import Any

from thinkproject.run.counts import Machine, available_memory, core_count, process_count

BEAT = "beat"


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
        return [*self.webs[1:], *self.workers[1:], BEAT]

    def command(self, name: str) -> list[str]:
        """Return the command line of a process."""
        if name in self.webs:
            words = ["thinkproject.run.server", "--fd", str(self.listener), "--gate", str(self.gate)]
        else:
            words = ["thinkproject.run.gated", "--gate", str(self.gate), *self._celery(name)]
        return [sys.executable, "-m", *words]

    def file_descriptors(self, name: str) -> list[int]:
        """Return the file descriptors that a process inherits."""
        return [self.listener, self.gate] if name in self.webs else [self.gate]

    def _celery(self, name: str) -> list[str]:
        if name == BEAT:
            schedule = str(self.settings.DATA_DIR / "beat-schedule")
            return ["beat", "--schedule", schedule, "--pidfile", "", "--loglevel", "WARNING"]
        threads = str(self.settings.WORKER_THREADS)
        options = ["--pool", "threads", "--concurrency", threads, "--without-gossip", "--without-mingle"]
        return ["worker", *options, "--hostname", f"{name}@%h", "--loglevel", "INFO"]


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind}-{number}" for number in range(1, count + 1)]
