"""The background work of one conversation: its fibers, for its agent, for code of the server, and for people.

All of it stands in the one table of fibers; those of an instance have its id as their scope. A fiber that a worker runs
is named `chat.agent_fiber:<route>.<method>`, so that only a worker whose class has the method claims it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from chat.agent.base import Agent, InstanceKey
from chat.agent.registry import get_agent_class
from chat.agent.values.background import FiberFunction, FiberInspection, FiberStart
from chat.background import rows
from chat.background.recovery import recover_lost
from chat.background.runs import FiberRun, call_function, follow
from chat.core.durable_names import AGENT_FIBER, AGENT_RUN
from chat.errors import FiberConflict, FiberInvalid
from chat.instances.notifications import notify_conversation, notify_waiters, turn_group
from chat.instances.quota import check_fiber_quota
from chat.instances.rows import ensure_instance, find_instance
from chat.instances.waiting import wait_until
from chat.models import AgentInstance
from fibers import context as contexts
from fibers import services
from fibers.context import FiberContext
from fibers.core.states import TERMINAL, WORKER_LOST, FiberStatus
from fibers.errors import FiberNotFound
from fibers.execution.in_caller import run_attached
from fibers.models import Fiber
from fibers.queue.enqueue import FiberSpec
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.phrases import Phrase

R = TypeVar("R")

MAX_LIST = 100
MAX_DELETED = 500


@dataclass(frozen=True, slots=True)
class InstanceFibers:
    """The fibers of an instance. `agent`: gives an object of its class. Errors of it: `AgentNotFound`."""

    key: InstanceKey
    agent: Callable[[], Awaitable[Agent]]

    async def start(self, start: FiberStart, *, waits: bool = False) -> FiberInspection:
        """Start a fiber, or find the one with this id or key; `waits`: until it has ended."""
        found = await db(start_row, self.key, start)
        if not waits or found.status in TERMINAL:
            return found
        pk = await db(lambda: self._row(found.id).pk)

        async def has_ended() -> bool:
            fiber = await db(Fiber.objects.filter(pk=pk).first)
            return fiber is None or fiber.status in TERMINAL

        await wait_until(has_ended, group=turn_group(pk))
        ended = await self.find(found.id)
        return found if ended is None else replace(ended, accepted=found.accepted)

    async def find(self, fiber_id: str | None = None, *, key: str | None = None) -> FiberInspection | None:
        """Read a fiber."""
        row = await db(self._find, fiber_id, key)
        return None if row is None else rows.inspection_of(row)

    async def newest(self, statuses: Collection[str], limit: int) -> list[FiberInspection]:
        """Read fibers, newest first."""

        def read() -> list[FiberInspection]:
            found = rows.own_work(self._instance_id())
            if statuses:
                found = found.filter(status__in=statuses)
            return [
                rows.inspection_of(row) for row in found.order_by("-created_at", "-pk")[: min(max(limit, 1), MAX_LIST)]
            ]

        return await db(read)

    async def cancel(self, fiber_id: str | None = None, *, key: str | None = None, reason: str = "cancelled") -> bool:
        """Stop a fiber."""
        return await db(self._cancel, fiber_id, key, reason)

    async def restart(self, fiber_id: str) -> FiberInspection:
        """Run a fiber again. Errors: `FiberNotFound`, `FiberConflict`."""
        return await db(lambda: restart_row(self._row(fiber_id)))

    async def resolve(self, fiber_id: str, status: str, *, result: JSONValue = None, error: str | None = None) -> bool:
        """Say how an interrupted fiber has ended. Errors: `FiberInvalid`."""
        return await db(lambda: resolve_row(self._find(fiber_id, None), status, result=result, error=error))

    async def delete(
        self,
        *,
        statuses: Collection[str] | None = None,
        ids: Sequence[str] | None = None,
        older_than_seconds: float = 0.0,
        limit: int = MAX_DELETED,
    ) -> int:
        """Delete fibers that have ended. Interrupted ones only where `statuses` names them."""

        def delete() -> int:
            wanted = set(statuses) if statuses is not None else TERMINAL - {FiberStatus.INTERRUPTED}
            instance_id = self._instance_id()
            found = rows.own_work(instance_id).filter(status__in=wanted)
            if ids is not None:
                found = found.filter(pk__in=[pk for given in ids for pk in (given, rows.own_pk(instance_id, given))])
            if older_than_seconds > 0:
                found = found.filter(finished_at__lt=Now() - timedelta(seconds=older_than_seconds))
            return services.delete_ended(found, min(max(limit, 0), MAX_DELETED))

        return await db(delete)

    async def check(self) -> list[FiberInspection]:
        """Take up the fibers whose workers were lost. Errors: `AgentCodeFailed` of the hooks; then they stay."""
        instance = await db(find_instance, self.key)
        return [] if instance is None else await recover_lost(instance.pk, await self.agent())

    async def run(self, name: str, function: FiberFunction[R], *, metadata: JSONObject | None = None) -> R:
        """Run a function here as a fiber."""
        start = FiberStart(method=name, payload=None, metadata=metadata)
        spec = await db(_attached_spec, self.key, start)

        async def call(context: FiberContext) -> Any:
            follow(context)
            return await call_function(function, FiberRun(context))

        return await run_attached(spec, call)

    async def stash(self, data: JSONValue) -> None:
        """Replace the snapshot of the fiber that is running here. Errors: `OutsideFiber`."""
        await contexts.stash(data)

    async def keep_alive(self) -> Callable[[], Awaitable[None]]:
        """Show that the instance is at work, until the function that is returned is called."""
        place = (id(asyncio.get_running_loop()), self.key)
        holder = _holders.get(place)
        if holder is None or holder.task.done():
            holder = _holders[place] = _Holder(self)
        holder.count += 1
        await holder.is_shown.wait()
        is_held = True

        async def release() -> None:
            nonlocal is_held
            if not is_held:
                return
            is_held = False
            holder.count -= 1
            if holder.count == 0:
                _holders.pop(place, None)
                holder.is_over.set()
                await asyncio.wait({holder.task})

        return release

    def _instance_id(self) -> str:
        if self.key.instance_id:
            return self.key.instance_id
        instance = find_instance(self.key)
        return "" if instance is None else instance.pk

    def _find(self, fiber_id: str | None, key: str | None) -> Fiber | None:
        return rows.find_row(self._instance_id(), fiber_id, key)

    def _row(self, fiber_id: str) -> Fiber:
        row = self._find(fiber_id, None)
        if row is None:
            raise FiberNotFound(f"there is no fiber {fiber_id!r}")
        return row

    def _cancel(self, fiber_id: str | None, key: str | None, reason: str) -> bool:
        row = self._find(fiber_id, key)
        return row is not None and cancel_row(row, reason=reason)


class _Holder:
    """The fiber that shows that an instance is kept alive by this process, and by how many."""

    def __init__(self, fibers: InstanceFibers) -> None:
        self.count = 0
        self.is_shown = asyncio.Event()
        self.is_over = asyncio.Event()
        self.task = asyncio.create_task(fibers.run(rows.KEEP_ALIVE, self._hold))
        self.task.add_done_callback(lambda _task: self.is_shown.set())  # also where it could not be shown

    async def _hold(self) -> None:
        self.is_shown.set()
        await self.is_over.wait()


_holders: dict[tuple[int, InstanceKey], _Holder] = {}


@transaction.atomic
def start_row(key: InstanceKey, start: FiberStart) -> FiberInspection:
    """Insert the fiber, or find the one with this id or key. Errors: as `FiberMethods.start_fiber`."""
    rows.check_start(start)
    rows.check_method(get_agent_class(key.agent), start.method)
    instance = ensure_instance(key)
    known = _known(instance, start)
    if known is None:
        check_fiber_quota(key.owner_id)
        known = _known(instance, start)  # now the owner's row is locked: nothing can have come in between
    if known is not None:
        return rows.inspection_of(known, accepted=False)
    fiber = services.start_fiber(
        f"{AGENT_FIBER}:{instance.agent}.{start.method}",
        rows.payload_of(instance.pk, start),
        share=None if key.owner_id is None else f"fibers:{key.owner_id}",
        owner_id=key.owner_id,
        key=rows.own_key(instance.pk, start.idempotency_key),
        max_retries=start.max_retries,
        metadata=start.metadata or {},
        scope=instance.pk,
        fiber_id="" if start.fiber_id is None else rows.own_pk(instance.pk, start.fiber_id),
    )
    notify_conversation(key.owner_id, instance.pk)
    return rows.inspection_of(fiber)


def _known(instance: AgentInstance, start: FiberStart) -> Fiber | None:
    if start.fiber_id is None and start.idempotency_key is None:
        return None
    same = Q(pk__in=[])
    pk, stored_key = "", rows.own_key(instance.pk, start.idempotency_key)
    if start.fiber_id is not None:
        pk = rows.own_pk(instance.pk, start.fiber_id)
        same |= Q(pk=pk)
    if stored_key is not None:
        same |= Q(key=stored_key)
    found = list(Fiber.objects.filter(same)[:2])
    if not found:
        return None
    known = found[0]
    is_another = (pk and known.pk != pk) or (stored_key is not None and known.key != stored_key)
    if len(found) > 1 or is_another or known.payload["method"] != start.method:
        raise FiberConflict("This id and this key belong to other background work.")
    return known


@transaction.atomic
def _attached_spec(key: InstanceKey, start: FiberStart) -> FiberSpec:
    rows.check_start(start)
    instance = ensure_instance(key)
    check_fiber_quota(key.owner_id)
    return FiberSpec(
        name=AGENT_RUN,
        payload=rows.payload_of(instance.pk, start),
        owner_id=key.owner_id,
        metadata=start.metadata or {},
        scope=instance.pk,
    )


def cancel_row(row: Fiber, *, reason: str) -> bool:
    """Stop a fiber, and wake those who wait for it."""
    is_stopped = services.cancel_fiber(row.pk, reason=reason)
    notify_fiber(row)
    return is_stopped


def restart_row(row: Fiber) -> FiberInspection:
    """Run a fiber again. Errors: `FiberConflict`."""
    if row.status in TERMINAL:
        if row.name == AGENT_RUN:
            raise FiberConflict("The function of this background work has ended with its process.")
        if row.status == FiberStatus.INTERRUPTED and row.reason == WORKER_LOST:
            moved = services.restart_lost_fiber(row.pk, is_retry=rows.is_spawned(row))
        else:
            moved = services.requeue_fiber(row.pk)
        if not moved:
            status = FiberStatus(row.status).value
            raise FiberConflict(Phrase("This background work is {status} and cannot run again.", status=status))
        row.refresh_from_db()
        notify_fiber(row)
    return rows.inspection_of(row)


def resolve_row(row: Fiber | None, status: str, *, result: JSONValue = None, error: str | None = None) -> bool:
    """Say how an interrupted fiber has ended. Errors: `FiberInvalid` for a status that is no end."""
    if status not in rows.RESOLUTIONS:
        raise FiberInvalid(Phrase("Background work ends as {statuses}.", statuses=", ".join(rows.RESOLUTIONS)))
    if row is None:
        return False
    failure = None if error is None else {"code": "resolved", "message": error, "retryable": False}
    is_resolved = services.resolve_fiber(row.pk, FiberStatus(status), result=result, error=failure)
    notify_fiber(row)
    return is_resolved


def notify_fiber(row: Fiber) -> None:
    """Wake those who wait for a fiber, and have open pages of its owner show it."""
    notify_waiters(row.pk)
    notify_conversation(row.owner_id, row.scope or "")
