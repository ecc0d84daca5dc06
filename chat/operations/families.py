"""Conversations with all that are below them, and which of them have work under way."""

from collections.abc import Sequence

from django.db.models import Exists, OuterRef

from chat.models import AgentInstance, Turn
from fibers.core.schedules.states import ScheduleStatus
from fibers.core.states import TERMINAL
from fibers.models import Fiber
from fibers.models.schedules import Schedule, ScheduleRun


def families_of(roots: Sequence[str]) -> dict[str, list[str]]:
    """Each root with all that are below it. One query a level."""
    families = {root: [root] for root in roots}
    root_of = {root: root for root in roots}
    edge = list(roots)
    while edge:
        found = list(AgentInstance.objects.filter(parent_id__in=edge).values_list("pk", "parent_id"))
        for member, parent in found:
            root_of[member] = root_of[str(parent)]
            families[root_of[member]].append(member)
        edge = [member for member, _ in found]
    return families


def busy_of(families: dict[str, list[str]]) -> set[str]:
    """Roots with a turn, background work, an active schedule or a run of one, in themselves or below. One query."""
    root_of = {member: root for root, members in families.items() for member in members}
    turns = Turn.objects.filter(instance=OuterRef("pk"), finished_at=None).exclude(fiber__status__in=TERMINAL)
    work = Fiber.objects.filter(scope=OuterRef("pk"), finished_at=None)
    schedules = Schedule.objects.filter(scope=OuterRef("pk"), status=ScheduleStatus.ACTIVE)
    runs = ScheduleRun.objects.filter(schedule__scope=OuterRef("pk")).exclude(fiber__status__in=TERMINAL)
    is_busy = Exists(turns) | Exists(work) | Exists(schedules) | Exists(runs)
    rows = AgentInstance.objects.filter(is_busy, pk__in=list(root_of))
    return {root_of[pk] for pk in rows.values_list("pk", flat=True)}
