"""*Deleted*: a conversation that its owner deleted is nowhere, and kept for 30 days to be restored or deleted for good.

What it does ends or waits: turns and background work stop, schedules are paused, links for readers end, sockets close.
Its rows stay, marked with all sub-agents below it, and count for quotas. Agents that remove a sub-agent, and accounts
that are deleted, do not come by here (`removal.py`).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from chat.errors import InstanceNotFound
from chat.instances.notifications import group_of, notify_conversation, notify_on_commit
from chat.instances.rows import descendants, hold_instance, key_of
from chat.models import AgentInstance, ImportedConversation
from chat.operations.removal import delete_instance
from chat.shares.services import revoke_links_of
from chat.turns.admission.admission import cancel_all, stopping
from fibers.core.schedules.states import ScheduleStatus
from fibers.core.states import TERMINAL
from fibers.models import Fiber
from fibers.models.schedules import Schedule
from fibers.schedules.services import pause_schedule, resume_schedule
from fibers.services import cancel_fiber
from thinkproject.kernel.ids import new_id

KEPT_DAYS: Final = 30
BATCH: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedConversation:
    """A conversation in *Deleted*. `ends_at`: when it is deleted for good."""

    id: str
    agent: str
    title: str
    deleted_at: datetime
    ends_at: datetime


def put_into_deleted(instance: AgentInstance) -> None:
    """Delete a root conversation so that it can be restored. Twice is once.

    Durability: one transaction; when it is committed, nothing of it begins any more. Errors: `TurnConflict` when turns
    are admitted again and again meanwhile.
    """
    active_at = instance.active_at
    with stopping(key_of(instance), queued_reason="deleted") as held:
        family = [held.pk, *descendants(held.pk)]
        rows = list(AgentInstance.everything.filter(pk__in=family))
        for row in rows:
            if row.pk != held.pk:
                cancel_all(row, queued_reason="deleted")
        _stop_work(family)
        revoke_links_of(family)
        ImportedConversation.objects.filter(instance_id__in=family).delete()  # an archive may bring it in once more
        now = timezone.now()
        AgentInstance.everything.filter(pk__in=family).update(deleted_at=now)
        # Noted as seen: the change feed learns by that column that its value has changed, which is nothing by now.
        AgentInstance.everything.filter(pk=held.pk).update(
            active_at=active_at, seen_at=now, held_schedules=_pause_schedules(family)
        )
        for row in rows:
            notify_on_commit(group_of(key_of(row)), {"type": "conversation.deleted"})
        notify_conversation(instance.owner_id, instance.pk)


@transaction.atomic
def restore_instance(owner_id: Any, instance_id: str) -> AgentInstance:
    """Bring a conversation back, with the schedules that the deletion paused. Links and work that were ended stay so.

    Where another one has its address by now it gets another name. Errors: `InstanceNotFound`, also for another's.
    """
    instance = find_deleted(owner_id, instance_id)
    hold_instance(instance)
    if instance.deleted_at is None:
        raise InstanceNotFound
    family = [instance.pk, *descendants(instance.pk)]
    taken = AgentInstance.objects.filter(owner_id=owner_id, agent=instance.agent, name=instance.name, parent=None)
    if taken.exists():
        AgentInstance.everything.filter(pk=instance.pk).update(name=new_id("chat"))
        _rename_ancestor(instance, family)
    AgentInstance.everything.filter(pk__in=family).update(deleted_at=None)
    AgentInstance.everything.filter(pk=instance.pk).update(held_schedules=None, seen_at=timezone.now())
    for schedule_id in instance.held_schedules or []:
        if Schedule.objects.filter(pk=schedule_id).exists():
            resume_schedule(schedule_id)
    notify_conversation(owner_id, instance.pk)
    return AgentInstance.objects.get(pk=instance.pk)


def find_deleted(owner_id: Any, instance_id: str) -> AgentInstance:
    """A root conversation of this person's in *Deleted*. Errors: `InstanceNotFound`."""
    row = None if "\x00" in instance_id else _of(owner_id).filter(pk=instance_id).first()
    if row is None:
        raise InstanceNotFound
    return row


def deleted_of(owner_id: Any, *, before: datetime | None = None, limit: int = 100) -> list[DeletedConversation]:
    """A person's conversations in *Deleted*, the last deleted first. One query."""
    rows = _of(owner_id)
    if before is not None:
        rows = rows.filter(deleted_at__lt=before)
    found = rows.order_by("-deleted_at", "pk").values_list("pk", "agent", "title", "deleted_at")[:limit]
    return [
        DeletedConversation(id=pk, agent=agent, title=title, deleted_at=at, ends_at=at + timedelta(days=KEPT_DAYS))
        for pk, agent, title, at in found
        if at is not None
    ]


def expired_deleted() -> QuerySet[AgentInstance]:
    """Conversations that were kept long enough."""
    before = timezone.now() - timedelta(days=KEPT_DAYS)
    return AgentInstance.everything.filter(parent=None, deleted_at__lt=before)


def prune_deleted() -> int:
    """Delete some of them for good. Returns how many. Durability: one transaction each."""
    removed = 0
    for row in expired_deleted().order_by("deleted_at", "pk")[:BATCH]:
        still = AgentInstance.everything.filter(pk=row.pk, deleted_at=row.deleted_at)
        try:
            removed += delete_instance(row, only_if=still.exists)
        except InstanceNotFound:  # another process was faster
            continue
    return removed


def _of(owner_id: Any) -> QuerySet[AgentInstance]:
    return AgentInstance.everything.filter(Q(owner_id=owner_id), parent=None, deleted_at__isnull=False)


def _stop_work(family: list[str]) -> None:
    live = Fiber.objects.filter(scope__in=family, finished_at=None).exclude(status__in=TERMINAL)
    for fiber_id in live.order_by("pk").values_list("pk", flat=True):
        cancel_fiber(fiber_id, reason="deleted")


def _pause_schedules(family: list[str]) -> list[str]:
    active = Schedule.objects.filter(scope__in=family, status=ScheduleStatus.ACTIVE).order_by("pk")
    return [pk for pk in active.values_list("pk", flat=True) if pause_schedule(pk)]


def _rename_ancestor(root: AgentInstance, family: list[str]) -> None:
    """Write the new name of a root into the addresses below it."""
    name = AgentInstance.everything.values_list("name", flat=True).get(pk=root.pk)
    for row in AgentInstance.everything.filter(pk__in=family, parent__isnull=False):
        row.ancestors = [[root.agent, name], *row.ancestors[1:]]
        row.save(update_fields=["ancestors"])
