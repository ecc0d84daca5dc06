"""The state of the installation: what waits in queues, and which workers are there. Reads only.

Bounded: fibers that have ended are not read, and tables have a limit.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count, Max, Min
from django.db.models.functions import Now

from fibers.core.states import FiberStatus
from fibers.models import Fiber

MOST_ROWS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """Fibers of a function that are due and that no worker has taken yet. `oldest_at`: since when the first is due."""

    function: str
    depth: int
    oldest_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """A worker with live leases. `beat_at`: its last sign of life."""

    name: str
    running: int
    oldest_at: datetime | None
    beat_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """`lost`: fibers whose worker no longer beats, which are about to be taken over."""

    queues: list[QueueView]
    workers: list[WorkerView]
    parked: int
    lost: int


def operations() -> Operations:
    """The queues and the workers of this moment. Four queries."""
    due = Fiber.objects.filter(status=FiberStatus.PENDING, available_at__lte=Now(), cancel_requested_at=None)
    queues = due.order_by().values("name").annotate(depth=Count("pk"), oldest=Min("available_at")).order_by("oldest")
    running = Fiber.objects.filter(status=FiberStatus.RUNNING)
    held = running.filter(lease_until__gte=Now()).order_by().values("worker")
    workers = held.annotate(count=Count("pk"), oldest=Min("started_at"), beat=Max("updated_at")).order_by("worker")
    return Operations(
        queues=[QueueView(function=r["name"], depth=r["depth"], oldest_at=r["oldest"]) for r in queues[:MOST_ROWS]],
        workers=[
            WorkerView(name=r["worker"], running=r["count"], oldest_at=r["oldest"], beat_at=r["beat"])
            for r in workers[:MOST_ROWS]
        ],
        parked=Fiber.objects.filter(status=FiberStatus.PARKED).count(),
        lost=Fiber.objects.expired().count(),
    )
