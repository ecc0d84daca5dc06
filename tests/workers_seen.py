"""A worker as readiness sees it: it listens for interrupts, and sends heartbeats."""

from collections.abc import Iterator
from contextlib import contextmanager

from chat.http.health import note_worker
from fibers.process.interrupts import Listener

SECONDS = 10.0


@contextmanager
def seen_worker(url: str) -> Iterator[Listener]:
    """Have a worker be there within the block."""
    listener = Listener(url)
    listener.start()
    try:
        assert listener.is_listening.wait(SECONDS)
        note_worker()
        yield listener
    finally:
        listener.stop()
        listener.join()
