"""A worker process besides its tasks: takes names, sweeps, listens for interrupts, returns its leases when it stops.

Started by Celery's signals in each worker process, or by hand where fibers run without Celery. The heartbeat needs no
start: it lives while the process runs a fiber.
"""

import asyncio
import logging
import random
import threading
import time
from collections.abc import Sequence
from typing import Any

from celery import signals
from django.db import close_old_connections, connection
from django.db.utils import Error as DatabaseError

from fibers.conf import fiber_settings
from fibers.core.states import FiberEvent, Interrupt
from fibers.errors import LeaseLost
from fibers.execution import recovery, runner
from fibers.execution.taking import NameTaker
from fibers.execution.worker_loop import shared_loop
from fibers.process.interrupts import Listener
from fibers.process.runs import RunRegistry, registry
from fibers.queue import leases, presence
from fibers.queue.leases import Settlement
from fibers.registry import own_queues, serve_queues, served_queues
from fibers.services import note_memory_loss

logger = logging.getLogger(__name__)

PRUNE_SECONDS = 300.0
POLL_SECONDS = 0.05


class Sweeper:
    """A thread that sweeps every few seconds."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, name="think-sweeper", daemon=True)
        self._pruned_at = 0.0

    def start(self) -> None:
        """Start sweeping, at once."""
        self._thread.start()

    def stop(self) -> None:
        """Sweep no more."""
        self._stop.set()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join(timeout=5)

    def _live(self) -> None:
        while not self._stop.is_set():
            self._sweep()
            close_old_connections()
            # Workers that were started together do not stay in step. Nothing secret hangs on the number.
            self._stop.wait(fiber_settings.sweep_seconds * random.uniform(0.8, 1.2))  # noqa: S311 - not cryptography
        connection.close()

    def _sweep(self) -> None:
        due = time.monotonic() - self._pruned_at > PRUNE_SECONDS
        try:
            presence.note_worker()
            counts = recovery.sweep(prune=due, run=_run_here)
        except DatabaseError:
            logger.exception("sweep failed", extra={"action": "sweep_failed"})
            close_old_connections()
            return
        if due:
            self._pruned_at = time.monotonic()
        if counts != recovery.SweepCounts():
            logger.info(
                "fibers swept",
                extra={
                    "action": "fibers_swept",
                    "recovered": counts.recovered,
                    "ended": counts.ended,
                    "dispatched": counts.dispatched,
                    "fired": counts.fired,
                    "pruned": counts.pruned,
                },
            )


def _run_here(fiber_ids: Sequence[str]) -> None:
    """Run fibers in this process, beside those of its messages."""
    for fiber_id in fiber_ids:
        asyncio.run_coroutine_threadsafe(runner.run_fiber(fiber_id), shared_loop())


class Worker:
    """The threads of one worker process. Starting and stopping twice is once."""

    def __init__(self, runs: RunRegistry) -> None:
        self._runs = runs
        self._lock = threading.Lock()
        self._threads: list[Sweeper | Listener | NameTaker] = []

    def start(self, room: int = 0) -> None:
        """Start sweeping and listening, and taking names for as many fibers at a time as there is room for."""
        with self._lock:
            if self._threads:
                return
            self._runs.is_closing = False
            _note_killed_worker()
            self._threads.append(Sweeper())
            if fiber_settings.redis_url:
                self._threads.append(Listener(fiber_settings.redis_url))
                if room:
                    self._threads.append(NameTaker(fiber_settings.redis_url, served_queues(), room, shared_loop()))
            for thread in self._threads:
                thread.start()

    def close(self) -> None:
        """Stop claiming, interrupt active runs, wait for them, and return the leases of the rest.

        **Units:** returns within the grace time and a second.
        """
        self._runs.is_closing = True
        with self._lock:
            threads, self._threads = self._threads, []
        for thread in threads:
            thread.stop()
        for run in self._runs.snapshot():
            run.interrupt(Interrupt.SHUTDOWN)
        deadline = time.monotonic() + runner.GRACE_SECONDS + 0.5
        while self._runs.snapshot() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        for run in self._runs.snapshot():
            # The loop itself is blocked, so only this thread can give up the lease.
            _hand_back(run.fiber_id, run.fence, run.progress)
        for thread in threads:
            thread.join()
        connection.close()


def _note_killed_worker() -> None:
    """Count the loss of the worker before this one against the fibers that it had, if memory ran out under it."""
    if fiber_settings.killed_worker:
        try:
            note_memory_loss(f"{fiber_settings.killed_worker}:")
        except DatabaseError:
            logger.exception("memory loss not noted", extra={"action": "memory_loss_not_noted"})


def _hand_back(fiber_id: str, fence: int, progress: int) -> None:
    try:
        leases.settle(
            fiber_id,
            fence,
            Settlement(event=FiberEvent.HAND_BACK, progress=progress, reason="shutdown", ended_itself=False),
        )
    except (LeaseLost, DatabaseError):
        logger.exception("lease not handed back", extra={"action": "hand_back_failed", "fiber_id": fiber_id})


worker = Worker(registry)


def connect() -> None:
    """Let Celery start and stop the worker of each of its processes."""
    signals.celeryd_init.connect(_on_init, weak=False, dispatch_uid="think_fibers_queues")
    signals.celeryd_after_setup.connect(_on_setup, weak=False, dispatch_uid="think_fibers_setup")
    signals.worker_ready.connect(_on_start, weak=False, dispatch_uid="think_fibers_ready")
    signals.worker_process_init.connect(_on_fork, weak=False, dispatch_uid="think_fibers_init")
    signals.worker_shutting_down.connect(_on_stop, weak=False, dispatch_uid="think_fibers_stop")
    signals.worker_process_shutdown.connect(_on_process_stop, weak=False, dispatch_uid="think_fibers_process_stop")


def _on_init(instance: Any, options: dict[str, Any], **_: object) -> None:
    instance.has_queues = bool(options.get("queues"))


def _on_setup(instance: Any, conf: Any, **_: object) -> None:
    """Settle which queues the worker listens to: those of `-Q`, else that of all and those of its functions."""
    queues = instance.app.amqp.queues
    if instance.has_queues:
        serve_queues({"" if queue == conf.task_default_queue else queue for queue in queues.consume_from})
        return
    for queue in sorted(own_queues()):
        queues.select_add(queue)


def _on_start(sender: Any, **_: object) -> None:
    # The parent of a pool of processes runs nothing itself.
    has_children = "prefork" in type(sender.pool).__module__
    worker.start(0 if has_children else sender.controller.concurrency)


def _on_fork(**_: object) -> None:
    """A child of a pool of processes has none of its parent's threads."""
    worker.__init__(registry)  # type: ignore[misc]  # afresh: the lock and the threads were the parent's
    worker.start(room=1)


def _on_stop(**_: object) -> None:
    # Runs inside Celery's signal handler: it may not wait, or the runs could not end.
    threading.Thread(target=worker.close, name="think-closing").start()


def _on_process_stop(**_: object) -> None:
    worker.close()
