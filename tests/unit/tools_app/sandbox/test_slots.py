"""How many scripts run at a time, and who is next."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context

import pytest

from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.code_tool.tool import shared_sandbox
from tools_app.errors import SandboxUnavailable
from tools_app.processes.tool import process_runs
from tools_app.sandbox.conf import sandbox_settings
from tools_app.sandbox.contract import Answer, Script
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.slots import FairSlots, SlotLimits, sandbox_runs
from tools_app.shell.tool import shell_sandbox


def policy(total: int, per_share: int, *, seconds: float = 10) -> FairSlots:
    return FairSlots(lambda: SlotLimits(total=total, per_share=per_share, seconds=seconds))


async def _hold(slots: FairSlots, share: str, order: list[str], release: asyncio.Event) -> None:
    async with slots.slot(share):
        order.append(share)
        await release.wait()


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what is waited for is no event
            await asyncio.sleep(0)


async def test_one_user_leaves_room_for_another() -> None:
    slots, release = policy(3, 2), asyncio.Event()
    order: list[str] = []
    tasks = [asyncio.create_task(_hold(slots, share, order, release)) for share in ["a", "a", "a", "a", "b"]]
    await _until(lambda: len(order) == 3)
    assert order == ["a", "a", "b"]
    release.set()
    await asyncio.gather(*tasks)
    assert sorted(order) == ["a", "a", "a", "a", "b"]
    assert slots.running == 0


async def test_who_waits_too_long_is_told() -> None:
    slots = policy(1, 1, seconds=0.01)
    async with slots.slot("a"):
        with pytest.raises(SandboxUnavailable):
            await asyncio.create_task(_hold(slots, "b", [], asyncio.Event()), context=Context())
    async with slots.slot("b"):
        assert slots.running == 1


async def test_who_gives_up_takes_no_slot() -> None:
    slots, release = policy(1, 1), asyncio.Event()
    order: list[str] = []
    first = asyncio.create_task(_hold(slots, "a", order, release))
    await _until(lambda: order == ["a"])
    second = asyncio.create_task(_hold(slots, "b", order, release))
    third = asyncio.create_task(_hold(slots, "c", order, release))
    await asyncio.sleep(0)
    second.cancel()
    release.set()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert order == ["a", "c"]
    assert slots.running == 0


async def test_runs_within_a_run_use_its_slot_one_at_a_time() -> None:
    slots, release = policy(1, 1), asyncio.Event()
    order: list[str] = []
    async with slots.slot("a"):
        inner = [asyncio.create_task(_hold(slots, f"inner {number}", order, release)) for number in (1, 2)]
        await _until(lambda: bool(order))
        assert (order, slots.running) == (["inner 1"], 1)
        release.set()
        await asyncio.gather(*inner)
    assert order == ["inner 1", "inner 2"]
    assert slots.running == 0


async def test_a_task_that_outlives_a_run_has_no_slot_any_more() -> None:
    slots, release, go = policy(1, 1), asyncio.Event(), asyncio.Event()
    order: list[str] = []

    async def later() -> None:
        await go.wait()
        await _hold(slots, "left behind", order, release)

    async with slots.slot("a"):
        left = asyncio.create_task(later())
    second = asyncio.create_task(_hold(slots, "b", order, release))
    await _until(lambda: order == ["b"])
    go.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert order == ["b"]
    release.set()
    await asyncio.gather(left, second)
    assert slots.running == 0


def test_the_slots_are_those_of_all_event_loops_of_the_process() -> None:
    slots = policy(1, 1)
    is_held, may_end = threading.Event(), threading.Event()

    async def hold_elsewhere() -> None:
        async with slots.slot("a"):
            is_held.set()
            await asyncio.to_thread(may_end.wait, 10)

    async def wait_here() -> int:
        waiting = asyncio.create_task(_hold(slots, "b", order, released))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        before = len(order)
        may_end.set()
        await waiting
        return before

    order: list[str] = []
    released = asyncio.Event()
    released.set()
    other = threading.Thread(target=lambda: asyncio.run(hold_elsewhere()))
    other.start()
    assert is_held.wait(10)
    assert asyncio.run(wait_here()) == 0
    other.join(10)
    assert (order, slots.running) == (["b"], 0)


async def test_one_policy_bounds_the_sandboxes_of_all_tools() -> None:
    release, begun = asyncio.Event(), asyncio.Event()

    async def held(_name: str, _args: list[JSONValue]) -> Answer:
        begun.set()
        await release.wait()
        return Answer(value=None, now_ms=0)

    slots = policy(1, 1, seconds=0.05)
    execute, bash = (DenoSandbox(spare=False, slots=slots) for _ in range(2))
    script = Script(source="async () => { await tools.hold() }", namespaces=("tools",))
    first = asyncio.create_task(execute.run(script, calls=held, share="a"))
    await asyncio.wait_for(begun.wait(), 30)
    with pytest.raises(SandboxUnavailable):
        await bash.run(Script(source="async () => 1"), calls=held, share="a")
    release.set()
    await first
    assert (await bash.run(Script(source="async () => 1"), calls=held, share="a")).value == 1


def test_the_tools_share_the_policy_of_the_settings() -> None:
    assert {id(sandbox.slots) for sandbox in (shared_sandbox(), shell_sandbox())} == {id(sandbox_runs)}
    assert process_runs is not sandbox_runs
    assert sandbox_runs.limits.total == sandbox_settings.limits.runs
    assert sandbox_runs.limits.per_share == sandbox_settings.limits.runs_per_user
