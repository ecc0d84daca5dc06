"""Threads for developers' code: apart for hooks and tools, shared out among users, never waited for in silence."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.inprocess.quiet_loop import QuietLoop
from thinkproject.kernel import threads
from thinkproject.kernel.aio import call_tool_code, user_code
from thinkproject.kernel.errors import Saturated
from thinkproject.kernel.threads import ThreadPool, acting_for


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What hanging functions wait for; opened at the end, whatever the test did."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(autouse=True)
def _few_threads(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.THINK_HOOK_THREADS = 2
    settings.THINK_TOOL_THREADS = 3
    settings.THINK_THREADS_PER_USER = 2
    monkeypatch.setattr(threads, "WAIT_SECONDS", 30)  # a test that expects no thread sets a shorter one


async def hang(gate: threading.Event, count: int) -> list["asyncio.Task[bool]"]:
    """Start tools that hang, as many as there are threads for."""
    started = threading.Semaphore(0)

    def tool() -> bool:
        started.release()
        return gate.wait(30)

    tasks = [asyncio.create_task(call_tool_code(tool)) for _ in range(count)]
    for _ in tasks:
        await asyncio.to_thread(started.acquire, timeout=10)
    return tasks


async def test_hanging_tools_leave_threads_to_hooks(gate: threading.Event) -> None:
    tasks = await hang(gate, 3)
    assert threads.tools.is_saturated
    assert await user_code(lambda: "hook") == "hook"
    gate.set()
    assert await asyncio.gather(*tasks) == [True] * 3


async def test_a_call_without_a_thread_in_time_fails_with_a_reason(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hang(gate, 3)
    monkeypatch.setattr(threads, "WAIT_SECONDS", 0.2)
    with pytest.raises(Saturated, match="No thread for tools") as caught:
        await call_tool_code(lambda: None)
    assert caught.value.retryable
    assert caught.value.data == {"kind": "tool", "threads": 3}


async def test_a_call_that_was_given_up_keeps_its_thread_until_it_ends(gate: threading.Event) -> None:
    for task in await hang(gate, 3):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert threads.tools.is_saturated
    gate.set()
    assert await call_tool_code(lambda: "free again") == "free again"


async def test_a_waiting_call_runs_as_soon_as_a_thread_is_free(gate: threading.Event) -> None:
    await hang(gate, 3)
    waiting = asyncio.create_task(call_tool_code(lambda: "ran"))
    await asyncio.sleep(0)
    gate.set()
    assert await waiting == "ran"


async def test_one_user_leaves_threads_to_others(gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    with acting_for("alice"):
        await hang(gate, 2)
        monkeypatch.setattr(threads, "WAIT_SECONDS", 0.2)
        with pytest.raises(Saturated):
            await call_tool_code(lambda: None)
    monkeypatch.setattr(threads, "WAIT_SECONDS", 30)
    with acting_for("bob"):
        assert await call_tool_code(lambda: "bob's") == "bob's"
    gate.set()
    with acting_for("alice"):
        assert await call_tool_code(lambda: "alice's") == "alice's"


async def test_what_a_function_raises_frees_its_thread() -> None:
    pool = ThreadPool("hook", lambda: 1)

    def fail() -> None:
        raise ValueError("its own")

    for _ in range(3):
        with pytest.raises(ValueError, match="its own"):
            await pool.run(fail)
    assert not pool.is_saturated


async def test_a_call_that_is_cancelled_before_it_begins_frees_its_thread() -> None:
    """A stop may come between the moment in which a thread is taken and the one in which it runs something."""
    pool = ThreadPool("tool", lambda: 1)
    for _ in range(200):
        call = asyncio.create_task(pool.run(lambda: None))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert await pool.run(lambda: "free again") == "free again"


def test_a_loop_knows_of_the_calls_that_it_started() -> None:
    """Tests on a quiet loop wait for hooks as they wait for the database."""
    go_on, loop = threading.Event(), QuietLoop()

    async def play() -> bool:
        task = loop.create_task(user_code(lambda: go_on.wait(30)))
        await asyncio.sleep(0)
        threading.Timer(0.05, go_on.set).start()
        await loop.quiet()
        return task.done()

    try:
        assert loop.run_until_complete(play())
    finally:
        loop.close()
