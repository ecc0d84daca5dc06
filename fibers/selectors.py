"""Read operations on fibers for other apps. Never opens a transaction."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import BooleanField, Count, ExpressionWrapper, Q
from django.db.models.functions import Now

from fibers.conf import fiber_settings
from fibers.core.states import TERMINAL, FiberStatus
from fibers.errors import FiberNotFound
from fibers.models import Fiber, FiberStep
from fibers.queue.leases import sealer_key
from fibers.queue.presence import seen_within
from fibers.registry import known_names
from thinkproject.kernel.jsonvalue import JSONValue

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FiberStepView:
    """A settled step."""

    step_key: str
    value: JSONValue
    attempt: int
    created_at: datetime


def get_fiber(fiber_id: str) -> Fiber:
    """Return the row. Errors: `FiberNotFound`."""
    found = Fiber.objects.filter(pk=fiber_id).first()
    if found is None:
        raise FiberNotFound(f"there is no fiber {fiber_id!r}")
    return found


def find_by_key(key: str) -> Fiber | None:
    """Return the fiber with this idempotency key."""
    return Fiber.objects.filter(key=key).first()


def find_step(fiber_id: str, step_key: str) -> FiberStep | None:
    """Return the record of a settled step."""
    return FiberStep.objects.filter(fiber_id=fiber_id, step_key=step_key).first()


def without_function() -> list[tuple[str, int]]:
    """Names of due fibers that neither this process nor an executor of the last day runs, and how many: most first.

    No worker runs them before a deploy that has their function; no retry is spent on them.
    """
    due = Fiber.objects.filter(status=FiberStatus.PENDING, available_at__lte=Now(), cancel_requested_at=None)
    counted = (
        due.exclude(name__in={*known_names(), *seen_within(DAY_SECONDS)})
        .order_by()
        .values_list("name")
        .annotate(count=Count("pk"))
    )
    return sorted(counted, key=lambda row: (-row[1], row[0]))


def is_being_sealed(fiber_id: str, fence: int) -> bool:
    """Whether a fiber that ended is still being tidied up after."""
    return Fiber.objects.filter(key=sealer_key(fiber_id, fence)).exclude(status__in=TERMINAL).exists()


def is_silent(prefix: str = "") -> "ExpressionWrapper[Q]":
    """Expression: whether a fiber runs whose worker has missed two heartbeats. Its lease may still hold.

    `prefix` leads to the fiber, as in `fiber__`. Every instant is the database's clock.
    """
    overdue = {
        f"{prefix}status": FiberStatus.RUNNING,
        f"{prefix}lease_until__lt": Now() + timedelta(seconds=_silent_seconds()),
    }
    return ExpressionWrapper(Q(**overdue), output_field=BooleanField())


def silent_condition(alias: str) -> tuple[str, list[str]]:
    """The same as text of a statement in which a fiber has this alias, and its parameters."""
    soon = (
        "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %s)"
        if connection.vendor == "sqlite"
        else "STATEMENT_TIMESTAMP() + CAST(%s AS interval)"
    )
    condition = f"({alias}.status = '{FiberStatus.RUNNING.value}' AND {alias}.lease_until < {soon})"
    return condition, [f"{_silent_seconds():+f} seconds"]


def _silent_seconds() -> float:
    """Seconds before the end of its lease in which a worker counts as silent."""
    return max(0.0, fiber_settings.lease_seconds - 2 * fiber_settings.heartbeat_seconds)


def history(fiber_id: str) -> list[FiberStepView]:
    """Return the settled steps of a fiber in the order in which they were recorded."""
    return [
        FiberStepView(step_key=step.step_key, value=step.value, attempt=step.attempt, created_at=step.created_at)
        for step in FiberStep.objects.filter(fiber_id=fiber_id).order_by("pk")
    ]
