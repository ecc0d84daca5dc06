"""*Deleted*: a conversation that its owner deleted is nowhere, and kept for 30 days to be restored or deleted for good.

What it does ends or waits: turns and background work stop, schedules are paused, links for readers end, sockets close.
After a restore schedules run again, and what was stopped is offered to people: nothing of it begins by itself.
Its rows stay, marked with all sub-agents below it, and count for quotas. Agents that remove a sub-agent, and accounts
that are deleted, do not come by here (`removal.py`).
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from chat.core.durable_names import AGENT_FIBER, AGENT_PAUSE_FIBER, AGENT_QUEUE
from chat.errors import InstanceNotFound, TurnConflict
from chat.instances.notifications import group_of, notify_conversation, notify_on_commit
from chat.instances.rows import descendants, key_of
from chat.models import AgentInstance, ImportedConversation, Turn
from chat.operations.families import families_of
from chat.operations.removal import delete_instance
from chat.shares.services import revoke_links_of
from chat.turns.admission.stop import STOP_TRIES, notify_settled
from chat.turns.state.active import lane_of
from chat.turns.state.status import DELETED_REASON
from fibers.core.schedules.states import ScheduleStatus
from fibers.core.states import HALTED, TERMINAL, FiberStatus
from fibers.errors import ScheduleInvalid
from fibers.models import Fiber
from fibers.models.schedules import Schedule, ScheduleRun
from fibers.schedules.services import pause_schedule, resume_schedule
from fibers.services import cancel_fiber, hold_fiber
from sessions_app.messages.sessions import hide_sessions
from thinkproject.kernel.ids import new_id

KEPT_DAYS: Final = 30
BATCH: Final = 50
AGENT_WORK: Final = Q(name__startswith=f"{AGENT_FIBER}:") | Q(name__startswith=f"{AGENT_QUEUE}:")
"""Background work whose code a worker has, so that it can run again."""

logger = logging.getLogger("think.chat")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedConversation:
    """A conversation in *Deleted*. `ends_at`: when it is deleted for good."""

    id: str
    agent: str
    title: str
    deleted_at: datetime
    ends_at: datetime


def put_into_deleted(instances: Sequence[AgentInstance]) -> None:
    """Delete root conversations so that they can be restored, all or none. Those that are deleted already stay so.

    A fixed number of queries, and some for each turn that runs, work and schedule. Durability: one transaction; when it
    is committed, nothing of them begins any more. Errors: `TurnConflict` when turns are admitted again and again
    meanwhile.

    A temporary one is not kept: it goes for good.
    """
    for row in instances:
        if row.is_temporary:
            delete_instance(row)
    roots = [row.pk for row in instances if not row.is_temporary]
    if not roots:
        return
    with _stopping_all(roots) as family:
        rows = list(AgentInstance.objects.filter(pk__in=family))
        ids = [row.pk for row in rows]
        revoke_links_of(ids)
        hide_sessions(ids, is_hidden=True)
        ImportedConversation.objects.filter(instance_id__in=ids).delete()  # an archive may bring them in once more
        now = timezone.now()
        held = _pause_schedules(rows)
        # Noted as seen: the change feed learns by that column that the value has changed, which is nothing by now.
        AgentInstance.objects.filter(pk__in=ids).update(deleted_at=now, seen_at=now)
        for root_id, schedule_ids in held.items():
            AgentInstance.everything.filter(pk=root_id).update(held_schedules=schedule_ids)
        for row in rows:
            notify_on_commit(group_of(key_of(row)), {"type": "conversation.deleted"})
            if row.parent_id is None:
                notify_conversation(row.owner_id, row.pk)


@contextmanager
def _stopping_all(roots: Sequence[str]) -> Iterator[list[str]]:
    """Open a transaction in which all turns and work of these and of those below them are stopped, and none begins.

    Fibers are locked first and instances second, as runners lock them; what is admitted between the two makes it start
    over, as in `chat/turns/admission/holding.py`.
    """
    for _ in range(STOP_TRIES):
        with transaction.atomic():
            families = families_of(sorted(roots))
            family = sorted(member for members in families.values() for member in members)
            held = {fiber_id for fiber_id in _live(family) if hold_fiber(fiber_id)}
            list(AgentInstance.objects.select_for_update().filter(pk__in=family).order_by("pk"))
            AgentInstance.objects.filter(pk__in=family).update(generation=F("generation") + 1)
            if not set(_live(family)) <= held:
                transaction.set_rollback(True)
                continue
            turns = list(Turn.objects.filter(fiber_id__in=held).select_related("instance"))
            _keep_begun(family, [turn.pk for turn in turns if turn.started_at is not None])
            work = set(Fiber.objects.filter(AGENT_WORK, pk__in=held).values_list("pk", flat=True))
            for fiber_id in sorted(held):
                cancel_fiber(fiber_id, reason=HALTED if fiber_id in work else DELETED_REASON)
            for turn in turns:
                notify_settled(turn)
            yield family
            return
    raise TurnConflict("Messages keep arriving in this conversation; try again in a moment.")


def _keep_begun(family: Sequence[str], turn_ids: Sequence[str]) -> None:
    """Take turns along into the generation that has begun: what they had shown is stored, though nothing new begins.

    So do those that were interrupted before, and go on when a person asks for it. One statement.
    """
    begun = Q(pk__in=turn_ids) | Q(fiber__status=FiberStatus.INTERRUPTED)
    Turn.objects.filter(begun, instance_id__in=family).update(generation=F("generation") + 1)


def _live(family: Sequence[str]) -> list[str]:
    """Fibers of turns, summaries, background work and occurrences of schedules that have not ended.

    A pause of an agent is none: it only keeps others from beginning, and stays.
    """
    at_work = Q(lane__in=[lane_of(member) for member in family]) | Q(scope__in=family)
    occurrences = ScheduleRun.objects.filter(schedule__scope__in=family).exclude(fiber__status__in=TERMINAL)
    live = Fiber.objects.filter(at_work, finished_at=None).exclude(status__in=TERMINAL)
    found = set(live.exclude(name=AGENT_PAUSE_FIBER).values_list("pk", flat=True))
    return sorted(found | set(occurrences.values_list("fiber_id", flat=True)))


@transaction.atomic
def restore_instances(owner_id: Any, instance_ids: Sequence[str]) -> list[str]:
    """Bring conversations back, with the schedules that the deletion paused; gives the ids of those that are back.

    Links stay ended. Turns and background work that were stopped stay so until a person has them run again. Where
    another conversation has the address by now it gets another name. Those of others, and those that are not deleted,
    are left out. A fixed number of queries, and some for each schedule and each new name.
    """
    wanted = [each for each in instance_ids if "\x00" not in each]
    rows = list(_of(owner_id).select_for_update().filter(pk__in=wanted).order_by("pk"))
    if not rows:
        return []
    mine = AgentInstance.objects.filter(owner_id=owner_id, parent=None, name__in=[row.name for row in rows])
    taken = set(mine.values_list("agent", "name"))
    family = _with_below([row.pk for row in rows])
    for row in rows:
        if (row.agent, row.name) in taken:
            _rename(row)
        taken.add((row.agent, row.name))
    AgentInstance.everything.filter(pk__in=family).update(deleted_at=None)
    hide_sessions(family, is_hidden=False)
    back = AgentInstance.objects.filter(pk__in=[row.pk for row in rows])
    back.update(held_schedules=None, seen_at=timezone.now())
    held = [schedule_id for row in rows for schedule_id in row.held_schedules or []]
    for schedule_id in Schedule.objects.filter(pk__in=held).order_by("pk").values_list("pk", flat=True):
        _resume(schedule_id)
    for row in rows:
        notify_conversation(owner_id, row.pk)
    return [row.pk for row in rows]


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


def _pause_schedules(rows: Sequence[AgentInstance]) -> dict[str, list[str]]:
    """Pause what is active, and give the ids by the root that they are of or below."""
    above = {row.pk: row.parent_id for row in rows}
    held: dict[str, list[str]] = {}
    active = Schedule.objects.filter(scope__in=list(above), status=ScheduleStatus.ACTIVE).order_by("pk")
    for schedule_id, scope in active.values_list("pk", "scope"):
        root_id: str = scope
        while (parent_id := above[root_id]) is not None:
            root_id = parent_id
        if pause_schedule(schedule_id):
            held.setdefault(root_id, []).append(schedule_id)
    return held


def _resume(schedule_id: str) -> None:
    """Arm a schedule again. One without a next time, as its zone is gone, stays paused: it holds nothing else up."""
    try:
        resume_schedule(schedule_id)
    except ScheduleInvalid as error:
        extra = {"action": "schedule_stays_paused", "schedule_id": schedule_id, "reason": str(error)}
        logger.warning("a schedule cannot run again after a restore", extra=extra)


def _with_below(roots: list[str]) -> list[str]:
    found, edge = list(roots), list(roots)
    while edge:
        edge = list(AgentInstance.everything.filter(parent_id__in=edge).values_list("pk", flat=True))
        found += edge
    return found


def _rename(root: AgentInstance) -> None:
    """Give a root another name, also in the addresses below it."""
    root.name = new_id("chat")
    root.save(update_fields=["name"])
    for row in AgentInstance.everything.filter(pk__in=descendants(root.pk)):
        row.ancestors = [[root.agent, root.name], *row.ancestors[1:]]
        row.save(update_fields=["ancestors"])
