"""People beside a chaos run: they approve what is asked, and end schedules. Runs within the installation (`Hand`)."""

from asgiref.sync import async_to_sync
from django.db import OperationalError, close_old_connections

from chat.instance.handle import AgentHandle
from chat.instances.rows import key_of
from chat.models import AgentInstance
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord


def approve() -> int:
    """Approve everything that is asked; returns how many decisions were the first. 0 while the database is away."""
    try:
        scopes = set(ToolCallRecord.objects.filter(status=CallStatus.ASKED).values_list("scope", flat=True))
        return sum(_approve(instance) for instance in AgentInstance.objects.filter(pk__in=scopes))
    except OperationalError:
        close_old_connections()
        return 0


def _approve(instance: AgentInstance) -> int:
    handle = AgentHandle(key_of(instance))

    async def decide() -> int:
        return sum([await handle.approve_execution(question.id) for question in await handle.pending_approvals()])

    return async_to_sync(decide)()


def end_schedules() -> int:
    """Cancel every schedule; returns how many there were."""

    async def end(handle: AgentHandle) -> int:
        return sum([await handle.cancel_schedule(view.id) for view in await handle.get_schedules()])

    return sum(async_to_sync(end)(AgentHandle(key_of(instance))) for instance in AgentInstance.objects.all())
