"""Background work whose worker was lost: the agent's hooks decide what becomes of it.

The sweep has interrupted it. A fiber in a lane of the instance takes up all that was lost, so that hooks of one
conversation do not run beside each other.
"""

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from chat.agent.base import Agent
from chat.agent.values.background import FiberInspection, LostFiber
from chat.background import rows
from chat.core.durable_names import AGENT_FIBERS_LOST, AGENT_RUN
from chat.instances.notifications import notify_waiters
from chat.models import AgentInstance
from chat.user_code.call_hook import user_code_boundary
from fibers import services
from fibers.context import FiberContext
from fibers.core.states import WORKER_LOST, FiberStatus
from fibers.models import Fiber
from thinkproject.kernel.aio import call_user_code, db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject

NOT_RESTARTED: Final = "not_restarted"
"""Reason of an interrupted fiber that the hooks did not start again."""
RETRIES_EXHAUSTED: Final = "retries_exhausted"
EXHAUSTED_TEXT: Final = "max retries exceeded (eviction recovery)"
HOOK_RETRIES: Final = 8
HOOK_FAILED: Final = "hook_failed"
HOOK_FAILED_TEXT: Final = "on_fibers_recovered has raised for a day"
GIVEN_UP_SECONDS: Final = 24 * 3600.0
"""How long what was lost is offered to hooks that raise."""
_BATCH: Final = 100


def note_lost(context: FiberContext) -> None:
    """Have what was lost taken up: for the fiber that tidies up after one that was interrupted."""
    sealed: JSONObject = context.payload
    if sealed["reason"] != WORKER_LOST:
        return
    instance_id = str(sealed["payload"]["instance_id"])
    instance = AgentInstance.objects.filter(pk=instance_id).first()
    if instance is None:
        services.resolve_fiber(str(sealed["fiber_id"]), FiberStatus.CANCELLED, reason="deleted")
        return
    services.start_fiber(
        f"{AGENT_FIBERS_LOST}:{instance.agent}",
        {"instance_id": instance_id},
        lane=f"{instance_id}:lost",
        owner_id=instance.owner_id,
        key=f"{context.fiber_id}:lost",
        max_retries=HOOK_RETRIES,
    )


async def recover_lost(instance_id: str, agent: Agent) -> list[FiberInspection]:
    """Take up all that was lost of an instance, oldest first. Errors: `AgentCodeFailed`; then it stays as it was."""
    lost = await db(_lost, instance_id)
    if not lost:
        return []
    described = [_described(row) for row in lost if row.status == FiberStatus.INTERRUPTED and _is_told(row)]
    if described:
        try:
            with user_code_boundary("on_fibers_recovered"):
                await call_user_code(agent.on_fibers_recovered, described)
        except ThinkError:
            await db(_give_up_old, [row.pk for row in lost])
            raise
    return await db(_leave, [row.pk for row in lost])


def _is_told(row: Fiber) -> bool:
    return not (row.name == AGENT_RUN and row.payload["method"] == rows.KEEP_ALIVE)


def _described(row: Fiber) -> LostFiber:
    return LostFiber(
        id=rows.id_of(row.pk, row.payload),
        method=row.payload["method"],
        payload=row.payload["payload"],
        snapshot=row.stash,
        retry_count=row.retries + int(rows.is_spawned(row)),
        can_restart=rows.can_restart(row),
        created_at=row.created_at,
    )


def _lost(instance_id: str) -> list[Fiber]:
    """The lost ones, those with no retry left failed."""
    found = rows.in_scope(instance_id).filter(status=FiberStatus.INTERRUPTED, reason=WORKER_LOST)
    lost = list(found.order_by("created_at", "pk")[:_BATCH])
    for row in lost:
        if rows.is_spawned(row) and row.retries + 1 > row.max_retries:
            error = {"code": RETRIES_EXHAUSTED, "message": EXHAUSTED_TEXT, "retryable": False}
            services.resolve_fiber(row.pk, FiberStatus.FAILED, error=error, reason=RETRIES_EXHAUSTED)
            notify_waiters(row.pk)
            row.refresh_from_db()
    return lost


@transaction.atomic
def _give_up_old(ids: list[str]) -> None:
    """Give up what has been lost for long while the hook raises: one that always raises must not hold up the others."""
    long_ago = Now() - timedelta(seconds=GIVEN_UP_SECONDS)
    lost = Fiber.objects.filter(pk__in=ids, status=FiberStatus.INTERRUPTED, reason=WORKER_LOST)
    old = lost.filter(finished_at__lt=long_ago)
    error = {"code": HOOK_FAILED, "message": HOOK_FAILED_TEXT, "retryable": False}
    for row in old.order_by("pk"):
        if rows.can_restart(row):
            services.resolve_fiber(row.pk, FiberStatus.FAILED, error=error, reason=HOOK_FAILED)
            notify_waiters(row.pk)
        else:
            row.delete()


def _leave(ids: list[str]) -> list[FiberInspection]:
    """Note of those that the hooks did not start again that they were called; forget those that cannot run again."""
    untouched = Fiber.objects.filter(pk__in=ids, status=FiberStatus.INTERRUPTED, reason=WORKER_LOST)
    found = Fiber.objects.in_bulk(ids)
    untouched.filter(name=AGENT_RUN).delete()
    untouched.update(reason=NOT_RESTARTED)
    return [rows.inspection_of(found[pk]) for pk in ids if pk in found]
