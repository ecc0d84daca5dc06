"""Retention of the conversations of sub-agents whose run has ended: they count as conversations of their user.

The row of the run stays, with its result. What people pinned, what was used since, and what has work under way, in
itself or below, stays as well.
"""

from datetime import timedelta
from typing import Final

from django.db.models import QuerySet
from django.db.models.functions import Now

from chat.models import AgentInstance
from chat.models.runs import AgentRun
from chat.operations.conf import retention_settings
from chat.operations.families import busy_of, families_of
from chat.operations.removal import delete_instance

BATCH: Final = 100
"""How many conversations go in one round."""

MAX_LOOKS: Final = 10
"""How many batches are looked at in one round, where those at its beginning have work under way."""


def expired_children() -> QuerySet[AgentRun]:
    """Runs that ended long ago and whose child has not been used since; the longest ended first."""
    days = retention_settings.run_child_days
    if not days:
        return AgentRun.objects.none()
    before = Now() - timedelta(days=days)
    still_used = AgentRun.objects.filter(finished_at=None, child__isnull=False)
    return AgentRun.objects.filter(
        finished_at__lt=before,
        child__isnull=False,
        child__active_at__lt=before,
        child__pinned_at=None,
    ).exclude(child__in=still_used.values("child"))


def prune_children() -> int:
    """Delete the conversations of some runs that ended long ago, with all below them. Returns how many.

    Durability: one transaction each, so a stop in between leaves whole conversations. Safe to repeat, and in several
    processes at once.
    """
    removed = 0
    seen: set[str] = set()
    for _ in range(MAX_LOOKS):
        rows = expired_children().exclude(child__in=seen).order_by("finished_at", "pk")
        ids = list(dict.fromkeys(rows.values_list("child_id", flat=True)[: BATCH - removed]))
        if not ids:
            break
        seen.update(ids)
        busy = busy_of(families_of(ids))
        removed += sum(_prune(child_id) for child_id in ids if child_id not in busy)
        if removed >= BATCH:
            break
    return removed


def _prune(child_id: str) -> bool:
    run = expired_children().filter(child_id=child_id).select_related("child").first()
    child = None if run is None else run.child
    if child is None:
        return False
    # Asked again while no turn can begin: a message may have come in between. Taking the lock counts one position.
    unchanged = AgentInstance.objects.filter(pk=child_id, turn_count=child.turn_count + 1, pinned_at=None)
    return delete_instance(child, only_if=lambda: unchanged.exists() and not busy_of(families_of([child_id])))
