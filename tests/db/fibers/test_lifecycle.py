"""The lifecycle of a runner, the same for every transport: one contract, over leases, in memory, and by webhooks."""

import asyncio
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Protocol

import pytest
from django.db import transaction
from typing_extensions import override

from chat.webhooks.adapter import Callbacks, WebhookAdapter
from chat.webhooks.outgoing import ServerLine
from chat.webhooks.wakes import read_wake
from fibers import services
from fibers.core.cursors import Checkpoint, is_later
from fibers.errors import CheckpointRegression, FiberStopped, LeaseLost, WakeRejected
from fibers.execution.recovery import sweep
from fibers.lifecycle import drain
from fibers.lifecycle.drain import DrainResult, drain_until_idle
from fibers.lifecycle.lease_adapter import FiberLeaseAdapter, read_checkpoints
from fibers.lifecycle.session import FenceToken, RunnerLifecycleAdapter, RunnerSession, Wake, run_with_lifecycle
from fibers.models import Fiber
from fibers.testing import expire_lease
from tests.db.fibers.in_process import InProcessAdapter
from tests.wake_server import WakeServer, wake_server
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)


class Transport(Protocol):
    """An adapter, and what a test does to its wakes."""

    adapter: RunnerLifecycleAdapter

    async def wake(self) -> Wake: ...

    async def lose(self, wake: Wake) -> None:
        """Let the claim's runner look dead, and another one take it over."""

    async def stop(self, wake: Wake) -> None: ...

    async def state(self, wake: Wake) -> str:
        """`done`, `waiting` or `failed`."""

    async def checkpoints(self) -> dict[str, str]: ...


class InMemory:
    """Claims in memory."""

    def __init__(self) -> None:
        self.woken: list[Wake] = []
        self.memory = InProcessAdapter(lease_seconds=0.3, wake_again=self.woken.append)
        self.adapter: RunnerLifecycleAdapter = self.memory

    async def wake(self) -> Wake:
        return Wake(id="one", runner="mirror")

    async def lose(self, wake: Wake) -> None:
        self.memory.expire(wake)
        await self.memory.claim_wake(wake, signal=asyncio.Event())

    async def stop(self, wake: Wake) -> None:
        self.memory.stop(wake)

    async def state(self, wake: Wake) -> str:
        try:
            fence = await self.memory.claim_wake(wake, signal=asyncio.Event())
        except WakeRejected:
            return "done"
        await self.memory.fail(wake, fence, ValueError())
        return "waiting" if self.woken else "failed"

    async def checkpoints(self) -> dict[str, str]:
        return {source: cursor for (_runner, source), cursor in self.memory.checkpoints.items()}


@transaction.atomic  # else a heartbeat in between makes the lease last
def _expire(fiber_id: str) -> None:
    expire_lease(fiber_id)
    sweep()


class OverLeases:
    """Fibers as wakes."""

    def __init__(self) -> None:
        self.adapter: RunnerLifecycleAdapter = FiberLeaseAdapter()

    async def wake(self) -> Wake:
        fiber = await db(services.start_fiber, "lifecycle.wake", {})
        return Wake(id=fiber.pk, runner="mirror")

    async def lose(self, wake: Wake) -> None:
        await db(_expire, wake.id)
        await FiberLeaseAdapter().claim_wake(wake, signal=asyncio.Event())

    async def stop(self, wake: Wake) -> None:
        assert await db(services.cancel_fiber, wake.id)

    async def state(self, wake: Wake) -> str:
        row = await db(Fiber.objects.get, pk=wake.id)
        return {"completed": "done", "pending": "waiting", "failed": "failed", "cancelled": "failed"}[row.status]

    async def checkpoints(self) -> dict[str, str]:
        return await db(read_checkpoints, "mirror")


class OverWebhooks:
    """Callbacks to a server of durable streams, over HTTP."""

    def __init__(self, server: WakeServer) -> None:
        self.server = server
        self.adapter: RunnerLifecycleAdapter

    async def wake(self) -> Wake:
        read = read_wake(json.dumps(self.server.wake()).encode())
        callbacks = Callbacks(ServerLine(self.server.origin), read, read.token, self._keep)
        self.adapter = WebhookAdapter(callbacks, read)
        return Wake(id=read.wake_id, runner="mirror")

    async def _keep(self, _token: str) -> None:
        """Keep nothing: the process lives as long as the wake."""

    async def lose(self, wake: Wake) -> None:
        with self.server.lock:
            self.server.begin()

    async def stop(self, wake: Wake) -> None:
        self.server.is_gone = True

    async def state(self, wake: Wake) -> str:
        return {"idle": "done", "waking": "waiting", "live": "failed"}[self.server.state]

    async def checkpoints(self) -> dict[str, str]:
        return self.server.acks


class Counting(RunnerLifecycleAdapter):
    """Only claims, and counts what else it is asked."""

    def __init__(self, inner: RunnerLifecycleAdapter) -> None:
        self.inner = inner
        self.heartbeat_seconds = 0.02
        self.calls: list[str] = []

    @override
    async def claim_wake(self, wake: Wake, *, signal: asyncio.Event) -> FenceToken:
        return await self.inner.claim_wake(wake, signal=signal)

    @override
    async def heartbeat(self, wake: Wake, fence: FenceToken) -> None:
        self.calls.append("heartbeat")
        await self.inner.heartbeat(wake, fence)

    @override
    async def complete(self, wake: Wake, fence: FenceToken, *, done: bool) -> None:
        self.calls.append(f"complete {done}")
        await self.inner.complete(wake, fence, done=done)

    @override
    async def fail(self, wake: Wake, fence: FenceToken, error: BaseException) -> None:
        self.calls.append(f"fail {type(error).__name__}")
        await self.inner.fail(wake, fence, error)


class Overtaken(Counting):
    """A heartbeat that is under way when the end is said, and comes after it."""

    def __init__(self, inner: RunnerLifecycleAdapter) -> None:
        super().__init__(inner)
        self.begun, self.ended, self.refused = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @override
    async def heartbeat(self, wake: Wake, fence: FenceToken) -> None:
        self.begun.set()
        await self.ended.wait()
        self.refused.set()
        raise LeaseLost

    @override
    async def complete(self, wake: Wake, fence: FenceToken, *, done: bool) -> None:
        await super().complete(wake, fence, done=done)
        self.ended.set()
        await self.refused.wait()


class ClaimsOnly(RunnerLifecycleAdapter):
    """The least that a transport can be."""

    @override
    async def claim_wake(self, wake: Wake, *, signal: asyncio.Event) -> FenceToken:
        return None


@pytest.fixture(params=[InMemory, OverLeases, OverWebhooks])
def transport(request: pytest.FixtureRequest, settings: Any) -> Iterator[Transport]:
    if request.param is not OverWebhooks:
        yield request.param()
        return
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]
    with wake_server() as server:
        yield OverWebhooks(server)


async def test_an_adapter_that_only_claims_is_enough() -> None:
    async def handler(session: RunnerSession) -> str:
        await session.heartbeat()
        await session.checkpoint(Checkpoint("log", "1"))
        await session.complete(done=True)
        return "ran"

    assert await run_with_lifecycle(Wake(id="w", runner="r"), ClaimsOnly(), handler) == "ran"


class TestContract:
    """What holds over every transport."""

    async def test_of_two_runners_of_one_wake_the_second_runs_nothing(self, transport: Transport) -> None:
        wake, ran = await transport.wake(), []

        async def second(_session: RunnerSession) -> None:
            ran.append("second")

        async def first(session: RunnerSession) -> None:
            with pytest.raises(WakeRejected):
                await run_with_lifecycle(wake, transport.adapter, second)
            await session.complete(done=True)

        await run_with_lifecycle(wake, transport.adapter, first)
        with pytest.raises(WakeRejected):  # stale: it was done
            await run_with_lifecycle(wake, transport.adapter, second)
        assert ran == []
        assert await transport.state(wake) == "done"

    async def test_a_handler_that_says_nothing_leaves_more_work(self, transport: Transport) -> None:
        wake, counting = await transport.wake(), Counting(transport.adapter)

        async def handler(_session: RunnerSession) -> int:
            return 7

        assert await run_with_lifecycle(wake, counting, handler) == 7
        assert [call for call in counting.calls if call != "heartbeat"] == ["complete False"]
        assert await transport.state(wake) == "waiting"

    async def test_a_second_end_changes_nothing(self, transport: Transport) -> None:
        wake, counting = await transport.wake(), Counting(transport.adapter)

        async def handler(session: RunnerSession) -> list[bool]:
            ends = [await session.complete(done=True), await session.complete(done=False)]
            return [*ends, await session.fail(ValueError())]

        assert await run_with_lifecycle(wake, counting, handler) == [True, False, False]
        assert [call for call in counting.calls if call != "heartbeat"] == ["complete True"]

    async def test_a_handler_that_raises_fails_the_wake_once_and_raises(self, transport: Transport) -> None:
        wake, counting = await transport.wake(), Counting(transport.adapter)

        async def handler(_session: RunnerSession) -> None:
            raise ValueError("broken")

        with pytest.raises(ValueError, match="broken"):
            await run_with_lifecycle(wake, counting, handler)
        assert [call for call in counting.calls if call != "heartbeat"] == ["fail ValueError"]
        assert await transport.state(wake) == "failed"

    async def test_a_runner_that_was_taken_for_dead_writes_nothing_more(self, transport: Transport) -> None:
        wake, refused = await transport.wake(), []

        async def handler(session: RunnerSession) -> None:
            await transport.lose(wake)
            for step in (
                lambda: session.heartbeat(),
                lambda: session.checkpoint(Checkpoint("log", "9")),
                lambda: session.complete(done=True),
                lambda: session.fail(ValueError()),
            ):
                with pytest.raises(LeaseLost):
                    await step()
                refused.append(session.signal.is_set())
            await session.heartbeat()

        with pytest.raises(LeaseLost):
            await run_with_lifecycle(wake, transport.adapter, handler)
        assert refused == [True] * 4
        assert await transport.checkpoints() == {}

    async def test_a_lost_claim_cancels_the_handler_by_the_heartbeat_that_finds_it(self, transport: Transport) -> None:
        wake, ended = await transport.wake(), asyncio.Event()

        async def handler(_session: RunnerSession) -> None:
            try:
                await transport.lose(wake)
                await asyncio.sleep(60)  # until a heartbeat finds it
            finally:
                ended.set()

        counting = Counting(transport.adapter)
        with pytest.raises(LeaseLost):
            await run_with_lifecycle(wake, counting, handler)
        assert ended.is_set()
        assert set(counting.calls) == {"heartbeat"}

    async def test_a_wake_that_somebody_stops_ends_as_stopped(self, transport: Transport) -> None:
        wake = await transport.wake()

        async def handler(_session: RunnerSession) -> None:
            await transport.stop(wake)
            await asyncio.sleep(60)  # until it is stopped

        with pytest.raises(FiberStopped):
            await run_with_lifecycle(wake, Counting(transport.adapter), handler)
        assert await transport.state(wake) == "failed"

    async def test_the_claim_is_renewed_during_one_long_cycle(self, transport: Transport) -> None:
        wake, counting = await transport.wake(), Counting(transport.adapter)

        async def handler(session: RunnerSession) -> None:
            while counting.calls.count("heartbeat") < 3:  # noqa: ASYNC110 - what is waited for is another task's
                await asyncio.sleep(0.01)
            await session.complete(done=True)

        await run_with_lifecycle(wake, counting, handler)
        assert await transport.state(wake) == "done"

    async def test_a_heartbeat_that_the_end_overtakes_takes_nothing_back(self, transport: Transport) -> None:
        wake, overtaken = await transport.wake(), Overtaken(transport.adapter)

        async def handler(session: RunnerSession) -> str:
            await overtaken.begun.wait()
            await session.complete(done=True)
            return "the value"

        assert await run_with_lifecycle(wake, overtaken, handler) == "the value"
        assert await transport.state(wake) == "done"

    async def test_a_caller_that_is_cancelled_hands_the_wake_back(self, transport: Transport) -> None:
        wake, started = await transport.wake(), asyncio.Event()

        async def handler(_session: RunnerSession) -> None:
            started.set()
            await asyncio.sleep(60)  # until its caller is cancelled

        task = asyncio.create_task(run_with_lifecycle(wake, transport.adapter, handler))
        async with asyncio.timeout(10):
            await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await transport.state(wake) == "waiting"

    async def test_checkpoints_only_advance(self, transport: Transport) -> None:
        wake = await transport.wake()

        async def handler(session: RunnerSession) -> None:
            await session.checkpoint(Checkpoint("log", "9"), Checkpoint("mail", "b"))
            await session.checkpoint(Checkpoint("log", "10"))
            await session.checkpoint(Checkpoint("log", "10"))  # equal: nothing to do
            for _ in range(2):  # the same answer to the same input
                with pytest.raises(CheckpointRegression):
                    await session.checkpoint(Checkpoint("mail", "c"), Checkpoint("log", "9"))
            await session.complete(done=True)

        await run_with_lifecycle(wake, transport.adapter, handler)
        assert await transport.checkpoints() == {"log": "10", "mail": "b"}


# Draining


class Work:
    """Rows that cycles take one by one; `stuck`: none gets done."""

    def __init__(self, rows: int, *, stuck: bool = False) -> None:
        self.rows, self.stuck, self.cycles = rows, stuck, 0

    async def is_left(self) -> bool:
        return self.rows > 0

    async def cycle(self, _session: RunnerSession) -> bool:
        self.cycles += 1
        if not self.stuck:
            self.rows -= 1
        return not self.stuck

    async def drain(self, transport: Transport, **options: Any) -> DrainResult:
        async def handler(session: RunnerSession) -> DrainResult:
            found = await drain_until_idle(
                session,
                has_pending_work=self.is_left,
                run_cycle=options.pop("run_cycle", self.cycle),
                build_checkpoint=lambda: [Checkpoint("rows", str(self.cycles))],
                **options,
            )
            await session.complete(done=found.completed)
            return found

        return await run_with_lifecycle(await transport.wake(), transport.adapter, handler)


async def test_draining_runs_until_nothing_is_left_and_stores_how_far_it_is(transport: Transport) -> None:
    assert await Work(3).drain(transport) == DrainResult(completed=True, cycles=3)
    assert await transport.checkpoints() == {"rows": "3"}


async def test_without_work_nothing_runs(transport: Transport) -> None:
    assert await Work(0).drain(transport) == DrainResult(completed=True, cycles=0)


async def test_endless_work_stops_at_the_bound_and_is_not_complete(transport: Transport) -> None:
    assert await Work(1000).drain(transport, max_iterations=3) == DrainResult(completed=False, cycles=3)


async def test_the_limit_of_time_is_looked_at_between_cycles(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await Work(5).drain(transport, max_seconds=0.0) == DrainResult(completed=False, cycles=0)
    work = Work(5)
    # Each cycle takes 10 s, so the third one is the last that begins within 25 s, and it is not cut.
    monkeypatch.setattr(drain, "time", SimpleNamespace(monotonic=lambda: 10.0 * work.cycles))
    assert await work.drain(transport) == DrainResult(completed=False, cycles=3)


async def test_work_that_keeps_failing_is_tried_once_and_not_fifty_times(transport: Transport) -> None:
    work = Work(5, stuck=True)
    assert await work.drain(transport) == DrainResult(completed=False, cycles=1, is_stalled=True)


async def test_work_that_comes_during_the_last_cycle_is_not_overlooked(transport: Transport) -> None:
    work = Work(1)

    async def last(session: RunnerSession) -> bool:
        await work.cycle(session)
        if work.cycles == 1:
            work.rows += 1
        return True

    assert await work.drain(transport, run_cycle=last) == DrainResult(completed=True, cycles=2)
    again = Work(1)

    async def adds(session: RunnerSession) -> bool:
        again.rows += 1
        return await again.cycle(session)

    other = InMemory()
    assert (await again.drain(other, run_cycle=adds, max_iterations=1)).completed is False


async def test_the_signal_from_outside_stops_a_running_cycle() -> None:
    transport, signal, started = InMemory(), asyncio.Event(), asyncio.Event()

    async def endless(session: RunnerSession) -> bool:
        assert session.signal is signal
        started.set()
        await asyncio.sleep(60)  # until the signal
        return True

    async def handler(session: RunnerSession) -> DrainResult:
        return await drain_until_idle(session, has_pending_work=Work(1).is_left, run_cycle=endless)

    task = asyncio.create_task(run_with_lifecycle(await transport.wake(), transport.adapter, handler, signal=signal))
    async with asyncio.timeout(10):
        await started.wait()
        signal.set()
        assert await task == DrainResult(completed=False, cycles=0)


async def test_a_failed_wake_with_retries_left_waits_for_its_next_try() -> None:
    fiber = await db(lambda: services.start_fiber("lifecycle.wake", {}, max_retries=1))
    wake = Wake(id=fiber.pk, runner="mirror")

    async def handler(_session: RunnerSession) -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await run_with_lifecycle(wake, FiberLeaseAdapter(), handler)
    row = await db(Fiber.objects.get, pk=fiber.pk)
    assert (row.status, row.reason, row.retries, row.available_at > row.updated_at) == ("pending", "retry", 1, True)
    with pytest.raises(WakeRejected):  # it is not due
        await run_with_lifecycle(wake, FiberLeaseAdapter(), handler)


@pytest.mark.parametrize(
    ("stored", "cursor", "later"),
    [(None, "1", True), ("9", "10", True), ("10", "10", False), ("010", "10", False), ("a", "b", True)],
)
def test_cursors_sort_as_texts_and_numbers_as_numbers(stored: str | None, cursor: str, later: bool) -> None:
    assert is_later(cursor, stored) is later


@pytest.mark.parametrize(("stored", "cursor"), [("10", "9"), ("b", "a")])
def test_an_earlier_cursor_is_an_error(stored: str, cursor: str) -> None:
    with pytest.raises(CheckpointRegression):
        is_later(cursor, stored)
