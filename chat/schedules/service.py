"""The schedules of an instance: what agents, their models and people do with them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from chat.agent.base import InstanceKey
from chat.agent.callables import find_callable
from chat.agent.invocation import check_arguments
from chat.agent.methods.schedules import check_method
from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.agent.values.schedules import ScheduleView, Work
from chat.background.rows import is_inherited
from chat.core.durable_names import SCHEDULED_FIBER
from chat.instances.rows import ensure_instance, find_instance
from chat.models import AgentInstance
from fibers.core.schedules.states import ScheduleStatus
from fibers.core.schedules.timing import ScheduleKind, Timing
from fibers.errors import ScheduleInvalid, ScheduleNotFound
from fibers.models.schedules import Schedule
from fibers.schedules import services
from fibers.schedules.services import ScheduleDraft
from thinkproject.kernel.aio import db
from thinkproject.kernel.filling import filled
from thinkproject.kernel.phrases import Phrase

LISTED: Final = 500
MAX_FUNCTION: Final = 200
PROMPT_RETRIES: Final = 3
"""How often asking is tried again, for instance where the owner has asked for too many turns this minute."""


@dataclass(frozen=True, slots=True)
class InstanceSchedules:
    """The schedules of an instance, for agents and code."""

    key: InstanceKey

    def check_method(self, name: str) -> None:
        """Errors: `ScheduleInvalid` for what is no public method of the agent."""
        check_method(get_agent_class(self.key.agent), name)

    async def add(  # noqa: PLR0913 - as the protocol has it
        self,
        timing: Timing,
        work: Work,
        *,
        is_once: bool,
        title: str = "",
        created_by: str = "code",
        can_overlap: bool = False,
        max_run_seconds: int | None = None,
    ) -> ScheduleView:
        """Store a schedule of the conversation."""

        def add() -> ScheduleView:
            instance = ensure_instance(self.key)
            draft = draft_of(
                instance,
                timing,
                work,
                is_once=is_once,
                title=title,
                created_by=created_by,
                can_overlap=can_overlap,
                max_run_seconds=max_run_seconds,
            )
            return view_of(services.create_schedule(draft)[0])

        return await db(add)

    async def list_all(self) -> list[ScheduleView]:
        """Read those that have not ended."""
        return await db(_list, self.key)

    async def remove(self, schedule_id: str) -> bool:
        """Delete one."""
        return await db(_remove, self.key, schedule_id)


def draft_of(instance: AgentInstance, timing: Timing, work: Work, **options: Any) -> ScheduleDraft:
    """A schedule of a conversation before it is stored.

    Errors: `ScheduleInvalid`, also for a prompt to an agent that does not chat; `CallRefused` for a callable that does
    not exist, that streams, or that takes other arguments.
    """
    method = work.callback
    if instance.is_temporary:
        raise ScheduleInvalid("A temporary conversation has no schedules. Keep the conversation first.")
    if work.prompt and not chats(instance):
        raise ScheduleInvalid(
            Phrase("Agent {agent!r} does not chat: a schedule of it names a method, no prompt.", agent=instance.agent)
        )
    if work.arguments is not None:
        agent_class = get_agent_class(instance.agent)
        info = find_callable(agent_class, method)
        if info.is_streaming:
            raise ScheduleInvalid(
                Phrase("Method {method} streams its result; schedules have no reader.", method=method)
            )
        check_arguments(agent_class, info, work.arguments)
        method = info.attribute
    return ScheduleDraft(
        scope=instance.pk,
        owner_id=instance.owner_id,
        timing=timing,
        function=function_of(instance.agent, method),
        payload={"instance_id": instance.pk, **work.to_json()},
        max_retries=PROMPT_RETRIES if work.prompt else 0,
        **options,
    )


def function_of(route: str, method: str = "") -> str:
    """The durable function of a schedule's runs: only workers with the agent, and its method, run them.

    Errors: `AgentNotFound`; `ScheduleInvalid` for names that are too long together.
    """
    is_own = method and not is_inherited(get_agent_class(route), method)  # the rest is there as long as the agent is
    name = f"{SCHEDULED_FIBER}:{route}.{method}" if is_own else f"{SCHEDULED_FIBER}:{route}"
    if len(name) > MAX_FUNCTION:
        raise ScheduleInvalid("The names of the agent and of the method are too long together.")
    return name


def chats(instance: AgentInstance) -> bool:
    """Whether the conversation's agent is served here and answers prompts."""
    return is_served(instance.agent) and issubclass(get_agent_class(instance.agent), Think)


def schedules_of(instance_id: str, *, with_ended: bool = False) -> list[Schedule]:
    """The schedules of a conversation, the next one first, those that are held or over last."""
    rows = Schedule.objects.filter(scope=instance_id)
    if not with_ended:
        rows = rows.exclude(status=ScheduleStatus.ENDED)
    found = list(rows.order_by("-created_at", "-pk")[:LISTED])
    far = datetime.max.replace(tzinfo=UTC)
    return sorted(
        found,
        key=lambda each: (
            each.status != ScheduleStatus.ACTIVE,
            each.status == ScheduleStatus.ENDED,
            each.next_at or far,
        ),
    )


def find_schedule(instance_id: str, schedule_id: str) -> Schedule:
    """A schedule of a conversation. Errors: `ScheduleNotFound`, for that of another one too."""
    found = Schedule.objects.filter(scope=instance_id, pk=schedule_id).first()
    if found is None:
        raise ScheduleNotFound(Phrase("There is no schedule “{id}”.", id=schedule_id))
    return found


def delete_schedule(schedule: Schedule) -> None:
    """Delete a schedule for a person; a run that goes on is not stopped.

    Errors: `ScheduleInvalid` for one that the agent's class declares: it would come back.
    """
    if schedule.declaration is not None:
        raise ScheduleInvalid("The agent declares this schedule. Pause it instead.")
    services.cancel_schedule(schedule.pk)


def view_of(schedule: Schedule) -> ScheduleView:
    """A row as agents see it."""
    payload = schedule.payload or {}
    return filled(
        ScheduleView,
        schedule,
        id=schedule.pk,
        kind=ScheduleKind(schedule.kind),
        callback=payload.get("method") or payload.get("callable", ""),
        prompt=payload.get("prompt", ""),
        task=payload.get("task", ""),
        payload=payload.get("payload"),
        status=ScheduleStatus(schedule.status),
    )


def _list(key: InstanceKey) -> list[ScheduleView]:
    instance = find_instance(key)
    return [] if instance is None else [view_of(each) for each in schedules_of(instance.pk)]


def _remove(key: InstanceKey, schedule_id: str) -> bool:
    instance = find_instance(key)
    if instance is None or not Schedule.objects.filter(scope=instance.pk, pk=schedule_id).exists():
        return False
    return services.cancel_schedule(schedule_id)
