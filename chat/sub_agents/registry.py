"""The registry of an instance's sub-agents, and its runs, as code of the parent reads them."""

from chat.agent.base import InstanceKey
from chat.agent.values.runs import AgentRunInfo, SubAgentInfo, SubAgentStatus
from chat.instances.rows import find_instance
from chat.models import AgentInstance, Turn
from chat.models.runs import AgentRun
from fibers.core.states import FiberStatus
from thinkproject.kernel.filling import filled
from tools_app.core.tool_calls import OPEN
from tools_app.models import ToolCallRecord

MAX_LISTED = 500


def sub_agents_of(key: InstanceKey, route: str = "") -> list[SubAgentInfo]:
    """The direct sub-agents, the most recently active first, at most `MAX_LISTED`; of one class where it is named.

    Four queries, however many there are, and the one that finds the instance.
    """
    instance = find_instance(key)
    if instance is None:
        return []
    children = AgentInstance.objects.filter(parent=instance)
    if route:
        children = children.filter(agent=route)
    rows = list(children.order_by("-active_at", "pk")[:MAX_LISTED])
    ids = [row.pk for row in rows]
    turns = Turn.objects.filter(instance_id__in=ids, finished_at=None)
    statuses = list(turns.values_list("instance_id", "fiber__status"))
    parked = {pk for pk, status in statuses if status == FiberStatus.PARKED}
    active = {pk for pk, _ in statuses}
    asked = set(ToolCallRecord.objects.filter(scope__in=ids, status__in=OPEN).values_list("scope", flat=True))
    runs = {run.child_id: info_of(run) for run in AgentRun.objects.filter(child_id__in=ids).order_by("created_at")}

    def status_of(pk: str) -> SubAgentStatus:
        if pk in parked or (pk in asked and pk not in active):
            return "waiting"
        return "running" if pk in active else "idle"

    return [
        SubAgentInfo(
            id=row.pk,
            agent=row.agent,
            name=row.name,
            status=status_of(row.pk),
            turn_count=row.turn_count,
            created_at=row.created_at,
            active_at=row.active_at,
            run=runs.get(row.pk),
        )
        for row in rows
    ]


def run_of(key: InstanceKey, run_id: str) -> AgentRun | None:
    """A run of an instance by the caller's id."""
    instance = find_instance(key)
    return None if instance is None else AgentRun.objects.filter(parent=instance, run_id=run_id).first()


def info_of(run: AgentRun) -> AgentRunInfo:
    """Describe a run for code of the parent."""
    return filled(AgentRunInfo, run)
