"""The ten invariants of durable state, each under its name; their edges are tested beside what keeps them.

The fifth, agent-call correlation, stands with the messages between agents.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.core.wire import chunks
from chat.core.wire.chunks import Chunk
from chat.stored_chunks import stream_to_collection
from chat.think import tool
from fibers import services
from fibers.core.cursors import Checkpoint
from fibers.effects.declaring import EffectEvent, create_effect
from fibers.effects.looking import look
from fibers.effects.registered import effects
from fibers.errors import CheckpointRegression, LeaseLost, WakeRejected
from fibers.execution.recovery import sweep
from fibers.lifecycle.drain import drain_until_idle
from fibers.lifecycle.lease_adapter import FiberLeaseAdapter
from fibers.lifecycle.session import RunnerSession, Wake, run_with_lifecycle
from fibers.models import Fiber
from fibers.queue import leases
from fibers.testing import expire_lease, run_effects, run_until_idle
from tests.budget import examples
from tests.db.fibers.in_process import InProcessAdapter
from tests.db.races import together
from tests.desk_calls import DeskCall, DeskPiece, desk_table, waiting
from thinkproject.kernel.aio import db
from tools_app.row_calls import create_row_call_effect

pytestmark = pytest.mark.django_db(transaction=True)
law = settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

runs: list[str] = []


@tool
async def search(query: str) -> str:
    """Count the runs."""
    runs.append(query)
    return query.upper()


@pytest.fixture(autouse=True)
def _invariants(settings: Any, transactional_db: None) -> Iterator[None]:
    settings.THINK_FIBER_DISPATCH = "manual"
    runs.clear()
    with desk_table():
        yield
        for effect in effects():
            asyncio.run(effect.dispose())


async def dispose_all() -> None:
    for effect in effects():
        await effect.dispose()
    for model in (DeskCall, DeskPiece, Fiber):
        await model._default_manager.all().adelete()
    runs.clear()


@law
@given(count=st.integers(1, 12), finders=st.integers(1, 6))
def test_1_no_duplicate_tool_execution(count: int, finders: int) -> None:
    effect = create_row_call_effect("law.calls", waiting, tools=[search])
    try:
        DeskCall.objects.bulk_create([DeskCall(name="search", args={"query": f"q{at}"}) for at in range(count)])
        assert not together(*[lambda: look(effect)] * finders)
        asyncio.run(run_effects())
        assert sorted(runs) == sorted(f"q{at}" for at in range(count))
        assert DeskCall.objects.filter(status="completed").count() == count
    finally:
        asyncio.run(dispose_all())


@law
@given(words=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)))
async def test_2_deterministic_chunk_ordering(words: list[str]) -> None:
    async def stream() -> AsyncIterator[Chunk]:
        for word in words:
            yield chunks.text_delta("t1", word)

    def to_piece(chunk: Chunk, index: int, answer: Any) -> DeskPiece:
        return DeskPiece(answer=answer, number=index, kind=chunk["type"], text=chunk["delta"])

    await stream_to_collection(
        stream(), DeskPiece, stream_id="a", transform=to_piece, stream_field="answer", index_field="number"
    )
    rows = [row async for row in DeskPiece.objects.values_list("number", "text")]
    assert sorted(number for number, _ in rows) == list(range(len(words)))
    replayed = [*rows, *rows]
    random.shuffle(replayed)  # delivered again, in any order
    assert "".join(text for _, text in sorted(dict(replayed).items())) == "".join(words)
    await dispose_all()


async def test_3_cancellation_propagation() -> None:
    ended: list[str] = []
    started = asyncio.Event()

    async def endless(event: EffectEvent) -> None:
        try:
            started.set()
            await asyncio.sleep(60)  # until it is cancelled
        except asyncio.CancelledError:
            ended.append(event.object_pk)
            raise

    effect = create_effect("law.cancel", waiting, on_enter=endless)
    await DeskCall.objects.acreate()
    running = asyncio.create_task(run_until_idle())
    async with asyncio.timeout(20):
        await started.wait()
        disposing = asyncio.create_task(effect.dispose())
        await db(services.cancel_fiber, (await Fiber.objects.aget()).pk)
        await asyncio.gather(running, disposing)
    assert len(ended) == 1
    assert (await Fiber.objects.aget()).status == "cancelled"


@pytest.mark.parametrize("keeps", [False, True])
async def test_4_late_result_policy(keeps: bool) -> None:
    @tool
    async def late(query: str) -> str:
        """Answer when its call has been cancelled."""
        await DeskCall.objects.aupdate(status="cancelled")
        return query

    def keep(call: Any, result: Any) -> None:
        DeskCall.objects.filter(pk=call.pk).update(result=result)

    create_row_call_effect("law.late", waiting, tools=[late], on_complete=keep if keeps else None)
    await DeskCall.objects.acreate(name="late", args={"query": "tea"})
    await run_effects()
    row = await DeskCall.objects.aget()
    assert (row.status, row.result) == ("cancelled", "tea" if keeps else None)


@law
@given(waiting_ones=st.integers(1, 5), workers=st.integers(2, 6))
def test_6_single_runner_guarantee(waiting_ones: int, workers: int) -> None:
    fibers = [services.start_fiber("law.lane", None, lane="one").pk for _ in range(waiting_ones)]
    assert not together(*[lambda: [leases.claim(fiber, "w") for fiber in fibers]] * workers)
    assert Fiber.objects.filter(status="running").count() == 1
    assert Fiber.objects.get(status="running").pk == fibers[0]
    Fiber.objects.all().delete()


@law
@given(steps=st.lists(st.sampled_from(["run", "done", "claimed"]), min_size=1, max_size=8))
async def test_7_lifecycle_fencing_is_adapter_enforced(steps: list[str]) -> None:
    adapter, wake, cycles = InProcessAdapter(), Wake(id="w", runner="r"), 0
    is_over = False

    async def handler(session: RunnerSession) -> None:
        nonlocal cycles
        cycles += 1
        if step == "claimed":  # another one comes while this one runs
            with pytest.raises(WakeRejected):
                await run_with_lifecycle(wake, adapter, handler)
        await session.complete(done=step == "done")

    for step in steps:
        before = cycles
        if is_over:
            with pytest.raises(WakeRejected):
                await run_with_lifecycle(wake, adapter, handler)
        else:
            await run_with_lifecycle(wake, adapter, handler)
        assert cycles - before == (0 if is_over else 1)
        is_over |= step == "done"


@law
@given(given_ones=st.lists(st.tuples(st.sampled_from(["log", "mail"]), st.integers(0, 20)), max_size=12))
async def test_8_checkpoint_monotonicity(given_ones: list[tuple[str, int]]) -> None:
    adapter = InProcessAdapter()
    highest: dict[str, int] = {}

    async def handler(session: RunnerSession) -> None:
        for source, cursor in given_ones:
            if cursor < highest.get(source, -1):
                for _ in range(2):  # the same input, the same failure
                    with pytest.raises(CheckpointRegression):
                        await session.checkpoint(Checkpoint(source, str(cursor)))
            else:
                await session.checkpoint(Checkpoint(source, str(cursor)))
                highest[source] = cursor
            assert {name: int(at) for (_, name), at in adapter.checkpoints.items()} == highest

    await run_with_lifecycle(Wake(id="w", runner="r"), adapter, handler)


@law
@given(first=st.integers(0, 4), arriving=st.lists(st.integers(0, 2), max_size=6), bound=st.integers(1, 8))
async def test_9_done_semantics_are_explicit(first: int, arriving: list[int], bound: int) -> None:
    left, cycles, again = [first], [0], list[Wake]()

    async def has_more() -> bool:
        return left[0] > 0

    async def cycle(_session: RunnerSession) -> bool:
        left[0] += (arriving[cycles[0]] if cycles[0] < len(arriving) else 0) - 1
        cycles[0] += 1
        return True

    async def handler(session: RunnerSession) -> bool:
        drained = await drain_until_idle(session, has_pending_work=has_more, run_cycle=cycle, max_iterations=bound)
        await session.complete(done=drained.completed)
        return drained.completed

    completed = await run_with_lifecycle(Wake(id="w", runner="r"), InProcessAdapter(wake_again=again.append), handler)
    assert completed is (left[0] == 0)
    assert bool(again) is not completed


@law
@given(beats=st.integers(0, 3))
async def test_10_keepalive_responsibility_is_explicit(beats: int) -> None:
    """As long as a runner beats, it is left; when it does not, its wake is given to another, and it is fenced."""
    fiber = await db(services.start_fiber, "law.wake", None)
    wake, signal = Wake(id=fiber.pk, runner="r"), asyncio.Event()
    silent, other = FiberLeaseAdapter(), FiberLeaseAdapter()
    fence = await silent.claim_wake(wake, signal=signal)
    for _ in range(beats):
        await silent.heartbeat(wake, fence)
        await db(sweep)
        with pytest.raises(WakeRejected):
            await other.claim_wake(wake, signal=signal)
    await db(_silence, fiber.pk)
    following = await other.claim_wake(wake, signal=signal)
    for step in (silent.heartbeat(wake, fence), silent.complete(wake, fence, done=True)):
        with pytest.raises(LeaseLost):
            await step
    await other.complete(wake, following, done=True)
    assert (await Fiber.objects.aget(pk=fiber.pk)).status == "completed"
    await Fiber.objects.all().adelete()


def _silence(fiber_id: str) -> None:
    expire_lease(fiber_id)
    sweep()
