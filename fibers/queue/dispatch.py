"""Notify the workers of new work: by the names of fibers, on commit.

Redis and Celery carry (`names.py`), the database decides. A message may be lost, late or doubled without harm: a claim
is a conditional UPDATE, and the sweeper sends unclaimed fibers again. So a broker that is down is logged and never
raised to the caller.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from celery import current_app
from celery.exceptions import CeleryError
from django.db import transaction
from django.db.models.functions import Now
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from fibers.conf import fiber_settings
from fibers.core.states import FiberStatus
from fibers.models import Fiber
from fibers.queue import names
from fibers.queue.presence import is_listened

logger = logging.getLogger(__name__)

RUN_TASK = "fibers.run_fiber"
BATCH = 8
"""Fibers of one task: it goes to one worker, and the others are to have something to do as well."""
PUBLISH_RETRY = {"max_retries": 2, "interval_start": 0.05, "interval_step": 0.1, "interval_max": 0.2}


_listeners: list[Callable[[], None]] = []


@contextmanager
def notified_of_dispatches(notify: Callable[[], None]) -> Iterator[None]:
    """Call this on every dispatch of this process, on whatever thread it happens: for who runs fibers in it."""
    _listeners.append(notify)
    try:
        yield
    finally:
        _listeners.remove(notify)


def dispatch_on_commit(fiber_ids: Sequence[str], *, delay_seconds: float = 0.0, queue: str = "") -> None:
    """Have workers notified of these fibers when the surrounding transaction commits. Never raises, then or now.

    `queue`: the one that all of them belong to (`fibers.registry.queue_of`). Where it is not known, the message may
    reach a worker without the function, and the sweep of one that has it takes the fiber.
    """
    if delay_seconds:
        transaction.on_commit(lambda: dispatch_now(fiber_ids, delay_seconds=delay_seconds, queue=queue), robust=True)
    else:
        transaction.on_commit(lambda: _outbox.send(fiber_ids, queue), robust=True)


def dispatch_now(fiber_ids: Sequence[str], *, delay_seconds: float = 0.0, queue: str = "") -> int:
    """Send the names of these fibers, to be run after so long; return how many were sent.

    **Concurrency:** outside a transaction. What could not be sent is marked for the next sweep, as is what no worker
    listens for. Never raises for a broker that does not answer.
    """
    for notify in tuple(_listeners):
        notify()
    if fiber_settings.dispatch != "celery":
        return 0
    if not is_listened(queue):
        forget_dispatch(fiber_ids)  # the sweep of a worker that comes finds them at once
        return 0
    if not delay_seconds and names.push(fiber_ids, queue):
        return len(fiber_ids)
    for start in range(0, len(fiber_ids), BATCH):
        batch = list(fiber_ids[start : start + BATCH])
        try:
            current_app.send_task(
                RUN_TASK,
                args=batch,
                queue=queue or None,
                countdown=delay_seconds or None,
                ignore_result=True,
                retry=True,
                retry_policy=PUBLISH_RETRY,
            )
        except (KombuError, CeleryError, RedisError, OSError) as error:
            logger.warning(
                "fiber dispatch failed",
                extra={"action": "fiber_dispatch_failed", "fiber_id": batch[0], "error": type(error).__name__},
            )
            forget_dispatch(fiber_ids[start:])
            return start
    return len(fiber_ids)


class _Outbox:
    """Fibers whose transactions have committed. A thread that finds none sending sends, and then what came meanwhile.

    At rest a fiber has a task of its own at once. In a burst several share one: making and taking a task costs more
    than the claim of a fiber.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[str, str]] = []  # the queue and the fiber
        self._is_sending = False

    def send(self, fiber_ids: Sequence[str], queue: str) -> None:
        """Send these, or leave them to the thread that sends."""
        with self._lock:
            self._waiting += [(queue, fiber_id) for fiber_id in fiber_ids]
            if self._is_sending:
                return
            self._is_sending = True
        try:
            while batch := self._next():
                dispatch_now([fiber_id for _, fiber_id in batch], queue=batch[0][0])
        except BaseException:
            self._is_sending = False
            raise

    def _next(self) -> list[tuple[str, str]]:
        """The next of one queue."""
        with self._lock:
            first = self._waiting[:BATCH]
            batch = [each for each in first if each[0] == first[0][0]]
            self._waiting[:BATCH] = [each for each in first if each[0] != first[0][0]]
            self._is_sending = bool(batch)
            return batch


_outbox = _Outbox()
os.register_at_fork(after_in_child=_outbox.__init__)  # type: ignore[misc]  # the thread that sends stays with the parent


def mark_dispatched(fiber_ids: Sequence[str]) -> None:
    """Note that the workers are notified of these now."""
    Fiber.objects.filter(pk__in=fiber_ids).update(dispatched_at=Now())


def forget_dispatch(fiber_ids: Sequence[str]) -> None:
    """Let the next sweep send these again."""
    Fiber.objects.filter(pk__in=fiber_ids, status=FiberStatus.PENDING).update(dispatched_at=None)
