"""Interrupts: have the process that runs a fiber read its row, now.

A notification carries no content: its receiver reads the row. A lost one costs until the next heartbeat, a doubled one
nothing. Over Redis pub/sub between processes; within this process directly, with or without Redis.
"""

import logging
import threading

import redis
from django.db import connection, transaction
from django.db.utils import Error as DatabaseError

from fibers.conf import fiber_settings
from fibers.core.states import Interrupt
from fibers.models import Fiber
from fibers.process.runs import registry
from fibers.queue.names import client_of

logger = logging.getLogger(__name__)

CHANNEL = "think:fibers:bell"
"""Each worker listens to it, and no other process does."""

POLL_SECONDS = 0.5
RECONNECT_SECONDS = 1.0


def notify_on_commit(fiber_id: str) -> None:
    """Ring for this fiber when the surrounding transaction commits. Never raises for a Redis that does not answer."""
    transaction.on_commit(lambda: notify(fiber_id), robust=True)


def notify(fiber_id: str) -> None:
    """Ring for this fiber, here and in all other processes."""
    answer(fiber_id)
    if not fiber_settings.redis_url:
        return
    try:
        client_of(fiber_settings.redis_url).publish(CHANNEL, fiber_id)
    except redis.RedisError as error:
        logger.warning("interrupt not sent", extra={"action": "interrupt_failed", "error": type(error).__name__})


def answer(fiber_id: str) -> None:
    """Read the row of a signalled fiber that runs here, and interrupt it if it is to be cancelled."""
    run = registry.signalled(fiber_id)
    if run is None:
        return
    if Fiber.objects.held(fiber_id, run.fence).exclude(cancel_requested_at=None).exists():
        run.interrupt(Interrupt.CANCEL)


class Listener:
    """A thread that handles the interrupts of other processes."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self.is_listening = threading.Event()
        self._thread = threading.Thread(target=self._live, name="think-interrupts", daemon=True)

    def start(self) -> None:
        """Start listening."""
        self._thread.start()

    def stop(self) -> None:
        """Listen no more."""
        self._stop.set()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join(timeout=5)

    def _live(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen()
            except redis.RedisError as error:
                self.is_listening.clear()
                logger.warning("interrupts lost", extra={"action": "interrupts_lost", "error": type(error).__name__})
                self._stop.wait(RECONNECT_SECONDS)

    def _listen(self) -> None:
        pubsub = client_of(self._url).pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]  # redis
        with pubsub:
            pubsub.subscribe(CHANNEL)
            self.is_listening.set()
            while not self._stop.is_set():
                message = pubsub.get_message(timeout=POLL_SECONDS)
                if message is not None:
                    self._answer(bytes(message["data"]).decode(errors="replace"))

    def _answer(self, fiber_id: str) -> None:
        try:
            answer(fiber_id)
        except DatabaseError:
            logger.exception("interrupt not handled", extra={"action": "interrupt_unread", "fiber_id": fiber_id})
        finally:
            connection.close()
