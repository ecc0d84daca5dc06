"""The queue of an instance: fibers in one lane of it. A lane keeps its order whatever fails, waits or is killed.

They are named `chat.agent_queue:<route>.<method>` and not as other background work: one whose worker was lost keeps its
place in the lane and goes on by itself, where a hook would decide about the other.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from chat.agent.base import Agent, InstanceKey
from chat.agent.registry import get_agent_class
from chat.agent.values.background import FiberStart, QueuedCall
from chat.agent.values.schedules import MAX_ATTEMPTS, MAX_RETRY_SECONDS, RETRY
from chat.background import rows
from chat.background.runs import run_method
from chat.core.durable_names import AGENT_QUEUE
from chat.errors import FiberInvalid
from chat.instances.quota import check_fiber_quota
from chat.instances.rows import ensure_instance, find_instance
from fibers import services
from fibers.context import FiberContext
from fibers.core.states import FiberStatus
from fibers.models import Fiber, FiberQuerySet
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.retry import RetryPolicy

DEQUEUED: Final = "dequeued"
LISTED: Final = 1000


@dataclass(frozen=True, slots=True)
class InstanceQueue:
    """The queue of an instance, for agents and code."""

    key: InstanceKey

    async def append(self, method: str, payload: JSONValue, retry: RetryPolicy | None) -> str:
        """Append a call; give its id."""
        return await db(_append, self.key, method, payload, retry or RETRY)

    async def take_out(self, *, call_id: str | None = None, method: str | None = None) -> int:
        """Take out calls that wait; give how many."""

        def take_out() -> int:
            calls = _calls(self.key, call_id)
            if method is not None:
                calls = calls.filter(name=f"{AGENT_QUEUE}:{self.key.agent}.{method}")
            return services.cancel_pending(calls, reason=DEQUEUED)

        return await db(take_out)

    async def calls(self, call_id: str | None = None) -> list[QueuedCall]:
        """Read the calls that have not ended, the next first, at most 1000."""
        return await db(lambda: [_shown(row) for row in _calls(self.key, call_id)[:LISTED]])


async def run_queued(context: FiberContext, make: Callable[[InstanceKey], Awaitable[Agent]]) -> JSONValue:
    """Run a call of a queue. Errors: those of the method; `Cancelled` when the conversation is gone."""
    context.retry_policy = RetryPolicy(**context.payload["retry"])
    return await run_method(context, make, tells=False)


def _lane(instance_id: str) -> str:
    return f"{instance_id}:queue"


@transaction.atomic
def _append(key: InstanceKey, method: str, payload: JSONValue, retry: RetryPolicy) -> str:
    if retry.attempts > MAX_ATTEMPTS or retry.max_seconds > MAX_RETRY_SECONDS:
        raise FiberInvalid(
            Phrase(
                "A run is tried 1 to {attempts} times, with at most {seconds} seconds between.",
                attempts=MAX_ATTEMPTS,
                seconds=MAX_RETRY_SECONDS,
            )
        )
    start = FiberStart(method=method, payload=payload, max_retries=retry.attempts - 1)
    rows.check_start(start)
    rows.check_method(get_agent_class(key.agent), method)
    instance = ensure_instance(key)
    check_fiber_quota(key.owner_id)
    delays = {
        "first_seconds": retry.first_seconds,
        "max_seconds": retry.max_seconds,
        "jitter_share": retry.jitter_share,
    }
    fiber = services.start_fiber(
        f"{AGENT_QUEUE}:{instance.agent}.{method}",
        {**rows.payload_of(instance.pk, start), "retry": delays},
        lane=_lane(instance.pk),
        share=None if key.owner_id is None else f"fibers:{key.owner_id}",
        owner_id=key.owner_id,
        max_retries=start.max_retries,
        scope=instance.pk,
    )
    return fiber.pk


def _calls(key: InstanceKey, call_id: str | None) -> FiberQuerySet:
    instance = find_instance(key)
    if instance is None:
        return Fiber.objects.none()
    calls = Fiber.objects.live_in(_lane(instance.pk))
    return calls if call_id is None else calls.filter(pk=call_id)


def _shown(row: Fiber) -> QueuedCall:
    return QueuedCall(
        id=row.pk,
        method=row.payload["method"],
        payload=row.payload["payload"],
        status=FiberStatus(row.status).value,
        retry_count=row.retries,
        max_retries=row.max_retries,
        created_at=row.created_at,
    )
