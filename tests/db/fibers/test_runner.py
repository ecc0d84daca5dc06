"""Running fibers: what the row says afterwards."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fibers import selectors, services
from fibers.context import FiberContext
from fibers.core.states import FiberStatus, Interrupt
from fibers.errors import Cancelled, Failed, Parked
from fibers.execution import runner
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from fibers.process.runs import registry as held
from fibers.queue import leases
from fibers.registry import durable
from fibers.testing import run_until_idle
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)

Script = Callable[[FiberContext], Any]
scripts: dict[str, Script] = {}
seen: list[Any] = []


@durable("runner.script")
async def script(ctx: FiberContext) -> Any:
    return await scripts[ctx.payload](ctx)


@durable("runner.tidied", sealed="runner.tidier")
async def tidied(ctx: FiberContext) -> Any:
    return await scripts[ctx.payload](ctx)


@durable("runner.tidier")
async def tidier(ctx: FiberContext) -> None:
    seen.append(ctx.payload["status"])


@pytest.fixture(autouse=True)
def _no_scripts() -> Iterator[None]:
    scripts.clear()
    seen.clear()
    yield
    assert held.snapshot() == []


async def start(function: Script, **options: Any) -> str:
    key = f"script{len(scripts)}"
    scripts[key] = function
    fiber = await db(services.start_fiber, "runner.script", key, **options)
    return str(fiber.pk)


async def row(fiber_id: str) -> Fiber:
    return await db(selectors.get_fiber, fiber_id)


async def wait_for(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in other threads and in the database
            await asyncio.sleep(0.01)


async def note(ctx: FiberContext) -> Any:
    seen.append(ctx.fiber_id)
    return {"attempt": ctx.attempt}


async def test_a_fiber_completes_with_its_result() -> None:
    fiber_id = await start(note)
    await run_until_idle()
    fiber = await row(fiber_id)
    assert (fiber.status, fiber.result, fiber.error, fiber.worker) == ("completed", {"attempt": 1}, None, "")
    assert fiber.finished_at is not None


async def test_a_claimed_fiber_is_never_run_twice() -> None:
    fiber_id = await start(note)
    await asyncio.gather(*(run_fiber(fiber_id) for _ in range(8)))
    await run_fiber(fiber_id)
    assert seen == [fiber_id]


async def test_always_failing_with_two_retries_fails_after_three_runs() -> None:
    async def fail(ctx: FiberContext) -> None:
        seen.append(ctx.attempt)
        raise ValueError("broken")

    fiber_id = await start(fail, max_retries=2)
    await run_until_idle(skip_delays=True)
    fiber = await row(fiber_id)
    assert (fiber.status, fiber.retries, seen) == ("failed", 3, [1, 2, 3])
    assert fiber.error == {"code": "internal", "message": "ValueError: broken", "retryable": False}


async def test_failing_once_completes_with_one_retry() -> None:
    async def fail_once(ctx: FiberContext) -> str:
        if ctx.attempt == 1:
            raise Failed("busy", "try again")
        return "done"

    fiber_id = await start(fail_once, max_retries=2)
    await run_until_idle()
    waiting = await row(fiber_id)
    assert (waiting.status, waiting.reason, waiting.retries) == ("pending", "retry", 1)
    assert waiting.error == {"code": "busy", "message": "try again", "retryable": True}
    assert 1 <= (waiting.available_at - waiting.updated_at).total_seconds() <= 2
    await run_until_idle(skip_delays=True)
    fiber = await row(fiber_id)
    assert (fiber.status, fiber.result, fiber.error, fiber.retries) == ("completed", "done", None, 1)


async def test_a_final_failure_is_not_tried_again() -> None:
    async def fail(ctx: FiberContext) -> None:
        raise Failed("no_key", "no key is set", is_final=True)

    fiber_id = await start(fail, max_retries=5)
    await run_until_idle(skip_delays=True)
    fiber = await row(fiber_id)
    assert (fiber.status, fiber.reason, fiber.attempt) == ("failed", "no_key", 1)


async def test_a_result_that_is_not_json_fails() -> None:
    async def odd(ctx: FiberContext) -> Any:
        return {1, 2}

    fiber_id = await start(odd, max_retries=5)
    await run_until_idle()
    assert (await row(fiber_id)).reason == "result_invalid"


async def test_a_name_that_is_unknown_waits_for_a_worker_that_does() -> None:
    fiber = await db(services.start_fiber, "runner.unknown", None)
    await run_until_idle(skip_delays=True)
    waiting = await row(fiber.pk)
    assert (waiting.status, waiting.attempt, waiting.retries) == ("pending", 0, 0)  # the rest: test_capabilities.py


async def test_cancel_reaches_the_running_task_at_once_and_the_function_can_persist() -> None:
    async def endless(ctx: FiberContext) -> None:
        seen.append("started")
        try:
            await asyncio.sleep(60)  # until it is cancelled
        except asyncio.CancelledError:
            await ctx.record("partial", "kept")
            seen.append(ctx.interrupt)
            raise Cancelled("partial") from None

    fiber_id = await start(endless)
    run = asyncio.create_task(run_fiber(fiber_id))
    await wait_for(lambda: bool(seen))
    started = asyncio.get_running_loop().time()
    assert await db(services.cancel_fiber, fiber_id, reason="user")
    await run
    assert asyncio.get_running_loop().time() - started < 1
    fiber = await row(fiber_id)
    assert (fiber.status, fiber.reason, fiber.result) == ("cancelled", "user", "partial")
    assert seen == ["started", Interrupt.CANCEL]
    assert [step.step_key for step in await db(selectors.history, fiber_id)] == ["partial"]


async def test_a_cancel_is_not_overwritten_by_a_finishing_run() -> None:
    async def stubborn(ctx: FiberContext) -> str:
        await db(Fiber.objects.filter(pk=ctx.fiber_id).update, cancel_requested_at="2026-01-01T00:00Z")
        return "finished anyway"

    fiber_id = await start(stubborn)
    await run_until_idle()
    fiber = await row(fiber_id)
    assert (fiber.status, fiber.result) == ("cancelled", None)


async def test_a_function_that_ignores_its_cancel_is_abandoned(monkeypatch: Any) -> None:
    monkeypatch.setattr(runner, "GRACE_SECONDS", 0.2)
    release = asyncio.Event()

    async def deaf(ctx: FiberContext) -> None:
        seen.append("started")
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                seen.append("ignored")
        with pytest.raises(Exception, match="runs this fiber now"):
            await ctx.record("late", 1)
        seen.append("refused")

    fiber_id = await start(deaf)
    run = asyncio.create_task(run_fiber(fiber_id))
    await wait_for(lambda: bool(seen))
    await db(services.cancel_fiber, fiber_id)
    await run
    assert (await row(fiber_id)).status == "cancelled"
    release.set()
    await wait_for(lambda: seen[-1] == "refused")
    assert await db(selectors.history, fiber_id) == []


async def test_a_lost_lease_stops_the_function_and_writes_nothing(settings: Any) -> None:
    settings.THINK_FIBER_HEARTBEAT_SECONDS = 0.1

    async def slow(ctx: FiberContext) -> str:
        try:  # the heartbeat may notice before the update has returned
            await db(Fiber.objects.filter(pk=ctx.fiber_id).update, fence=7, worker="another")
            await asyncio.sleep(60)  # until it is interrupted
        except asyncio.CancelledError:
            seen.append(ctx.interrupt)
        return "too late"

    fiber_id = await start(slow)
    await run_fiber(fiber_id)
    fiber = await row(fiber_id)
    assert seen == [Interrupt.LEASE_LOST]
    assert (fiber.status, fiber.worker, fiber.result, fiber.fence) == ("running", "another", None, 7)


@pytest.mark.long
async def test_the_heartbeat_keeps_a_long_run_alive_while_the_loop_is_busy(settings: Any) -> None:
    settings.THINK_FIBER_LEASE_SECONDS = 2.0
    settings.THINK_FIBER_HEARTBEAT_SECONDS = 0.3

    async def busy(ctx: FiberContext) -> Any:
        ctx.advance(5)
        waiting = asyncio.get_running_loop().run_in_executor(None, lapsed_fibers, 4.0)
        return await waiting

    fiber_id = await start(busy)
    await run_fiber(fiber_id)
    fiber = await row(fiber_id)
    assert (fiber.status, fiber.result, fiber.progress) == ("completed", 0, 5)


def lapsed_fibers(seconds: float) -> int:
    lapsed = 0
    for _ in range(int(seconds / 0.05)):
        time.sleep(0.05)
        lapsed += Fiber.objects.expired().count()
    return lapsed


async def test_a_parked_fiber_goes_on_over_its_journal() -> None:
    async def ask(ctx: FiberContext) -> Any:
        asked = await ctx.step("ask", lambda: note(ctx))
        if ctx.attempt == 1:
            raise Parked("approval")
        return asked

    fiber_id = await start(ask)
    await run_until_idle()
    fiber = await row(fiber_id)
    assert (fiber.status, fiber.reason) == ("parked", "approval")
    await db(services.resume_fiber, fiber_id)
    await run_until_idle()
    assert (await row(fiber_id)).status == "completed"
    assert seen == [fiber_id]


async def test_the_lane_is_drained_by_the_one_who_runs_it() -> None:
    ids = [await start(note, lane="chat") for _ in range(5)]
    await run_fiber(ids[0])
    assert seen == ids


async def test_a_notification_for_a_later_fiber_runs_what_stands_before_it() -> None:
    ids = [await start(note, lane="chat") for _ in range(3)]
    await run_fiber(ids[2])
    assert seen == ids


async def test_a_failure_does_not_stop_the_lane() -> None:
    async def fail(ctx: FiberContext) -> None:
        raise ValueError

    ids = [await start(fail, lane="chat"), await start(note, lane="chat")]
    await run_fiber(ids[0])
    assert seen == [ids[1]]


async def test_callbacks_run_after_the_completing_commit() -> None:
    async def watched(ctx: FiberContext) -> None:
        async def broken(status: FiberStatus) -> None:
            raise ValueError("ignored")

        async def look(status: FiberStatus) -> None:
            seen.append((status, (await row(ctx.fiber_id)).status))

        ctx.on_settled(broken)
        ctx.on_settled(look)

    await start(watched)
    await run_until_idle()
    assert seen == [("completed", "completed")]


async def test_a_runner_that_is_cancelled_hands_its_fiber_back() -> None:
    async def endless(ctx: FiberContext) -> None:
        seen.append("started")
        await asyncio.sleep(60)  # until its runner is cancelled

    fiber_id = await start(endless)
    run = asyncio.create_task(run_fiber(fiber_id))
    await wait_for(lambda: bool(seen))
    run.cancel()
    await run
    fiber = await row(fiber_id)
    assert (fiber.status, fiber.reason, fiber.recoveries, fiber.retries) == ("pending", "shutdown", 0, 0)


async def test_a_claim_that_a_stopped_worker_waits_for_is_handed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its transaction goes on in a thread; nothing would run the fiber before its lease has run out."""

    async def never(_ctx: FiberContext) -> None:
        seen.append("ran")

    fiber_id = await start(never)
    claims, goes_on = asyncio.Event(), threading.Event()
    loop, claim = asyncio.get_running_loop(), runner._claim_and_begin

    def slow(claimed: str) -> Any:
        context = claim(claimed)
        loop.call_soon_threadsafe(claims.set)
        assert goes_on.wait(15)
        return context

    monkeypatch.setattr(runner, "_claim_and_begin", slow)
    task = asyncio.create_task(run_fiber(fiber_id))
    await claims.wait()
    task.cancel()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    fiber = await row(fiber_id)
    assert (fiber.status, fiber.reason, fiber.recoveries, seen) == ("pending", "shutdown", 0, [])


async def test_a_heartbeat_beats_once_for_everything_that_runs(settings: Any) -> None:
    settings.THINK_FIBER_HEARTBEAT_SECONDS = 0.2
    beats: list[int] = []
    renew = leases.renew

    def counting(worker: str, runs: Any) -> leases.RenewalResult:
        beats.append(len(runs))
        return renew(worker, runs)

    async def nap(ctx: FiberContext) -> None:
        seen.append(1)
        await asyncio.sleep(1)  # five intervals between beats: their number is what is tested

    ids = [await start(nap) for _ in range(6)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leases, "renew", counting)
        await asyncio.gather(*(run_fiber(fiber_id) for fiber_id in ids))
    assert max(beats) == 6
    assert len(beats) <= 7


async def _fail(_ctx: FiberContext) -> None:
    raise RuntimeError("broke")


async def _say_failed(_ctx: FiberContext) -> None:
    raise Failed("own", "an end of its own", is_final=True)


async def _say_cancelled(_ctx: FiberContext) -> None:
    try:
        await asyncio.sleep(30)  # until it is cancelled
    except asyncio.CancelledError:
        raise Cancelled from None


async def _let_through(_ctx: FiberContext) -> None:
    await asyncio.sleep(30)  # until it is cancelled


@pytest.mark.parametrize(
    ("function", "is_cancelled", "tidied_after"),
    [
        (note, False, []),
        (_say_failed, False, []),
        (_fail, False, ["failed"]),
        (_say_cancelled, True, []),
        (_let_through, True, ["cancelled"]),
    ],
)
async def test_what_did_not_end_itself_is_tidied_up_after(
    function: Script, is_cancelled: bool, tidied_after: list[str]
) -> None:
    scripts["one"] = function
    fiber = await db(services.start_fiber, "runner.tidied", "one")
    if is_cancelled:
        held.signalled(fiber.pk)
    await run_until_idle()
    assert [what for what in seen if what != fiber.pk] == tidied_after


@pytest.mark.parametrize(
    ("error", "has_traceback"),
    [(Failed("refused", "The provider refused.", is_final=True), False), (ValueError("a bug"), True)],
)
async def test_only_what_was_unforeseen_is_logged_with_a_traceback(
    caplog: pytest.LogCaptureFixture, error: Exception, has_traceback: bool
) -> None:
    async def fails(_context: FiberContext) -> None:
        raise error

    caplog.set_level("WARNING", logger="fibers.execution.runner")
    await start(fails)
    await run_until_idle()
    [noted] = [record for record in caplog.records if getattr(record, "action", "") == "fiber_error"]
    assert bool(noted.exc_info) is has_traceback
    assert str(error) in getattr(noted, "error", "")


BEGUN: list[Any] = []


def _begin(context: FiberContext) -> str:
    BEGUN.append(context.payload)
    Fiber.objects.filter(pk=context.fiber_id).update(metadata={"begun": context.payload})
    if context.payload == "broken":
        raise KeyError("a fault in the begin")
    return f"begun {context.payload}"


@durable("runner.beginning", begin=_begin)
async def beginning(context: FiberContext) -> Any:
    return context.begun


@durable("runner.completing")
async def completing(context: FiberContext) -> Any:
    await db(_complete, context)
    if context.payload == "late":
        raise ValueError("nothing that comes after the end counts")
    return "what the function returns does not count either"


def _complete(context: FiberContext) -> None:
    with context.completing({"done": context.payload}):
        Fiber.objects.filter(pk=context.fiber_id).update(metadata={"written": "with the end"})
        if context.payload == "broken":
            raise ZeroDivisionError


async def test_a_begin_commits_with_the_claim() -> None:
    row = await ran_alone("runner.beginning", "well")
    assert (row.status, row.result, row.metadata) == ("completed", "begun well", {"begun": "well"})


async def test_a_begin_that_fails_is_taken_back_and_leaves_the_claim() -> None:
    row = await ran_alone("runner.beginning", "broken")
    assert (row.status, row.result, row.metadata) == ("completed", None, {})
    assert row.attempt == 1


@pytest.mark.parametrize("payload", ["well", "late"])
async def test_a_function_completes_its_fiber_with_its_last_write(payload: str) -> None:
    row = await ran_alone("runner.completing", payload)
    assert (row.status, row.result, row.metadata) == ("completed", {"done": payload}, {"written": "with the end"})
    assert (row.worker, row.lease_until, row.retries) == ("", None, 0)


async def test_an_end_that_fails_completes_nothing() -> None:
    row = await ran_alone("runner.completing", "broken")
    assert (row.status, row.result, row.metadata) == ("failed", None, {})


async def ran_alone(name: str, payload: str) -> Fiber:
    """The row of a fiber that was run."""
    fiber = await db(services.start_fiber, name, payload)
    await run_fiber(fiber.pk)
    return await db(lambda: Fiber.objects.get(pk=fiber.pk))
