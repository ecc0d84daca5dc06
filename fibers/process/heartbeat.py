"""The heartbeat of a process: one thread, one batched UPDATE, every few seconds, for all fibers it runs.

A thread of its own, so that neither a busy loop nor a full executor can starve the leases. It lives while there is
something to beat for, and keeps no database connection when there is nothing.
"""

import logging
import threading
import time

from django.db import close_old_connections, connection
from django.db.utils import Error as DatabaseError

from fibers.conf import fiber_settings
from fibers.core.states import Interrupt
from fibers.process.runs import RunRegistry, registry, worker_name
from fibers.queue import leases

logger = logging.getLogger(__name__)


class Heartbeat:
    """Renews the leases of a registry's runs, and reports lost leases and requested cancels."""

    def __init__(self, runs: RunRegistry) -> None:
        self._runs = runs
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._renewed_at = 0.0
        self._changed = threading.Event()

    def ensure(self) -> None:
        """Start the thread if it does not run. Call after adding a run. Safe after a fork."""
        with self._lock:
            self._changed.set()
            if self._thread is not None and self._thread.is_alive():
                return
            self._renewed_at = time.monotonic()
            self._thread = threading.Thread(target=self._live, name="think-heartbeat", daemon=True)
            self._thread.start()

    def beat(self) -> None:
        """Renew once. A database that does not answer for a whole lease interrupts every run. Never raises for it."""
        runs = {run.fiber_id: run for run in self._runs.snapshot()}
        started = time.monotonic()
        try:
            beat = leases.renew(
                worker_name(),
                {key: leases.Held(fence=run.fence, progress=run.progress) for key, run in runs.items()},
            )
        except DatabaseError:
            logger.exception("lease renewal failed", extra={"action": "lease_renewal_failed"})
            close_old_connections()
            if started - self._renewed_at > fiber_settings.lease_seconds:
                for run in runs.values():
                    run.interrupt(Interrupt.LEASE_LOST)
            return
        self._renewed_at = started
        for key in beat.lost:
            runs[key].interrupt(Interrupt.LEASE_LOST)
        for key in beat.cancelled:
            runs[key].interrupt(Interrupt.CANCEL)

    def _live(self) -> None:
        beaten_at = time.monotonic()
        try:
            while True:
                pause = beaten_at + fiber_settings.heartbeat_seconds - time.monotonic()
                if pause > 0:
                    self._changed.wait(pause)
                    self._changed.clear()
                    continue
                beaten_at = time.monotonic()
                if self._is_idle():
                    return
                self.beat()
                close_old_connections()
        finally:
            connection.close()

    def _is_idle(self) -> bool:
        with self._lock:  # against a run that is added at this moment: it starts a thread of its own
            if self._runs.snapshot():
                return False
            self._thread = None
            return True


heartbeat = Heartbeat(registry)
