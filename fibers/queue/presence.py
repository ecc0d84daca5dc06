"""The presence of executors, by the functions that they have: for what sends messages, and for people."""

import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.db.models import QuerySet
from django.db.models.functions import Now

from fibers.models import ServedFunction
from fibers.models.served import ExecutorKind
from fibers.registry import find_durable, queue_of, served_names

SECONDS: Final = 60.0
"""How often an executor says that it is there."""

LISTENING_SECONDS: Final = 900.0
KNOWN_DAYS: Final = 30
_noted: dict[tuple[str, str], float] = {}


def note_served(names: Iterable[str], kind: ExecutorKind) -> None:
    """Note that an executor with these functions is there. A statement for each, once a minute for each process."""
    now = time.monotonic()
    due = [name for name in names if now - _noted.get((name, kind.value), -SECONDS) >= SECONDS]
    for name in due:
        ServedFunction.objects.update_or_create(
            name=name, kind=kind, defaults={"queue": queue_of(name), "seen_at": Now()}
        )
        _noted[name, kind.value] = now
    if due:
        ServedFunction.objects.filter(seen_at__lt=Now() - timedelta(days=KNOWN_DAYS)).delete()


def note_worker() -> None:
    """Note what this worker has of such families."""
    note_served([name for name in served_names() if _has_queue(name)], ExecutorKind.WORKER)


def is_listened(queue: str) -> bool:
    """Whether a worker listens to a queue, as far as is known: messages of one without listeners would pile up."""
    return not queue or served_lately().filter(queue=queue, kind=ExecutorKind.WORKER).exists()


def served_lately(seconds: float = LISTENING_SECONDS) -> QuerySet[ServedFunction]:
    """The functions that some executor had in the last seconds."""
    return ServedFunction.objects.filter(seen_at__gt=Now() - timedelta(seconds=seconds))


def seen_within(seconds: float) -> set[str]:
    """The names of the same."""
    return set(served_lately(seconds).values_list("name", flat=True))


def _has_queue(name: str) -> bool:
    entry = find_durable(name)
    return entry is not None and entry.queue is not None
