"""The lifecycle over the leases of fibers: a wake is a fiber, its claim the fiber's lease.

`start_fiber("mirror", {...})` makes a wake that any transport may carry by its id: a task, a schedule, a webhook. A
fiber whose name is no durable function is claimed by this adapter alone, since workers take only what they have.
"""

import asyncio
from collections.abc import Sequence

from django.db import transaction
from django.db.models.functions import Now
from typing_extensions import override

from fibers.conf import fiber_settings
from fibers.core.cursors import Checkpoint, is_later
from fibers.core.states import FiberEvent
from fibers.errors import FiberStopped, LeaseLost, WakeRejected
from fibers.lifecycle.session import FenceToken, RunnerLifecycleAdapter, Wake
from fibers.models import Fiber, RunnerCheckpoint
from fibers.process.runs import worker_name
from fibers.queue import leases
from fibers.queue.dispatch import dispatch_on_commit
from fibers.queue.leases import Settlement
from thinkproject.kernel.aio import db


class FiberLeaseAdapter(RunnerLifecycleAdapter):
    """Fibers as wakes. `Wake.id` is a fiber's id.

    Every step but the claim is a transaction that holds only while the lease does. A wake that fails is tried again
    after a pause while the fiber has retries left.
    """

    def __init__(self) -> None:
        self.heartbeat_seconds = fiber_settings.lease_seconds / 3

    @override
    async def claim_wake(self, wake: Wake, *, signal: asyncio.Event) -> FenceToken:
        claim = await db(leases.claim, wake.id, worker_name())
        if claim is None:
            raise WakeRejected
        return claim.fiber.fence

    @override
    async def heartbeat(self, wake: Wake, fence: FenceToken) -> None:
        """Prolong the lease, and see whether the fiber is to be cancelled."""
        if await db(_renew, wake.id, _fence(fence)):
            raise FiberStopped

    @override
    async def checkpoint(self, wake: Wake, fence: FenceToken, checkpoints: Sequence[Checkpoint]) -> None:
        await db(_advance, wake, _fence(fence), checkpoints)

    @override
    async def complete(self, wake: Wake, fence: FenceToken, *, done: bool) -> None:
        """Complete the fiber, or return it to the queue at once."""
        event = FiberEvent.COMPLETE if done else FiberEvent.HAND_BACK
        await db(_settle, wake.id, _fence(fence), Settlement(event=event, progress=0, reason="" if done else "more"))

    @override
    async def fail(self, wake: Wake, fence: FenceToken, error: BaseException) -> None:
        """Fail the fiber, or have it wait for its next try."""
        await db(_fail, wake.id, _fence(fence), error)


def _fence(token: FenceToken) -> int:
    assert isinstance(token, int)
    return token


def _renew(fiber_id: str, fence: int) -> bool:
    """Prolong the lease; whether the fiber is to be cancelled."""
    with leases.fenced(fiber_id, fence):
        return Fiber.objects.filter(pk=fiber_id).exclude(cancel_requested_at=None).exists()


def _advance(wake: Wake, fence: int, checkpoints: Sequence[Checkpoint]) -> None:
    with leases.fenced(wake.id, fence):
        for each in checkpoints:
            place = RunnerCheckpoint.objects.filter(runner=wake.runner, source=each.source)
            made, is_new = RunnerCheckpoint.objects.get_or_create(
                runner=wake.runner, source=each.source, defaults={"cursor": each.cursor}
            )
            # Two wakes of one runner may advance at once: whose update finds another cursor has come too late.
            if (
                not is_new
                and is_later(each.cursor, made.cursor)
                and not place.filter(cursor=made.cursor).update(cursor=each.cursor, updated_at=Now())
            ):
                raise LeaseLost("another run of this runner has advanced its checkpoint")


def _settle(fiber_id: str, fence: int, settlement: Settlement) -> None:
    with transaction.atomic():
        leases.settle(fiber_id, fence, settlement)
        if settlement.event is FiberEvent.HAND_BACK:
            dispatch_on_commit([fiber_id])


def _fail(fiber_id: str, fence: int, error: BaseException) -> None:
    fiber = Fiber.objects.held(fiber_id, fence).first()
    if fiber is None:
        raise LeaseLost
    settlement = leases.failed(
        *leases.words_of(error),
        will_retry=fiber.retries < fiber.max_retries,
        delay_seconds=leases.RETRY.delay_seconds(fiber.retries + 1, jitter=0.5),
    )
    _settle(fiber_id, fence, settlement)


def read_checkpoints(runner: str) -> dict[str, str]:
    """The checkpoints of a runner: source to cursor."""
    return dict(RunnerCheckpoint.objects.filter(runner=runner).values_list("source", "cursor"))
