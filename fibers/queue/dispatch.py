"""Notify the workers of new work: one task by name, on commit.

Celery carries, the database decides. A message may be lost, late or doubled without harm: a claim is a conditional
UPDATE, and the sweeper sends unclaimed fibers again. So a broker that is down is logged and never raised to the caller.
"""

import logging
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

logger = logging.getLogger(__name__)

RUN_TASK = "fibers.run_fiber"
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


def dispatch_on_commit(fiber_ids: Sequence[str], *, delay_seconds: float = 0.0) -> None:
    """Send one task for each fiber when the surrounding transaction commits. Never raises, then or now."""
    transaction.on_commit(lambda: dispatch_now(fiber_ids, delay_seconds=delay_seconds), robust=True)


def dispatch_now(fiber_ids: Sequence[str], *, delay_seconds: float = 0.0) -> int:
    """Send one task for each fiber, to be run after so long; return how many were sent.

    **Concurrency:** outside a transaction. What could not be sent is marked for the next sweep. Never raises for a
    broker that does not answer.
    """
    for notify in tuple(_listeners):
        notify()
    if fiber_settings.dispatch != "celery":
        return 0
    for index, fiber_id in enumerate(fiber_ids):
        try:
            current_app.send_task(
                RUN_TASK,
                args=[fiber_id],
                countdown=delay_seconds or None,
                ignore_result=True,
                retry=True,
                retry_policy=PUBLISH_RETRY,
            )
        except (KombuError, CeleryError, RedisError, OSError) as error:
            logger.warning(
                "fiber dispatch failed",
                extra={"action": "fiber_dispatch_failed", "fiber_id": fiber_id, "error": type(error).__name__},
            )
            forget_dispatch(fiber_ids[index:])
            return index
    return len(fiber_ids)


def mark_dispatched(fiber_ids: Sequence[str]) -> None:
    """Note that the workers are notified of these now."""
    Fiber.objects.filter(pk__in=fiber_ids).update(dispatched_at=Now())


def forget_dispatch(fiber_ids: Sequence[str]) -> None:
    """Let the next sweep send these again."""
    Fiber.objects.filter(pk__in=fiber_ids, status=FiberStatus.PENDING).update(dispatched_at=None)
