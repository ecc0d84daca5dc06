"""Turns beside code that hangs: tools of others do not hold up hooks, and a turn without a thread reports it."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.db.chat.turns.conftest import MakeRoom, status_of
from thinkproject.kernel import threads
from thinkproject.kernel.aio import call_tool_code, user_code

pytestmark = pytest.mark.django_db(transaction=True)


@contextlib.asynccontextmanager
async def hanging(run: Any, pool: threads.ThreadPool) -> AsyncIterator[None]:
    """Fill a pool with functions that hang until the end of the block."""
    gate, started = threading.Event(), threading.Semaphore(0)

    def hang() -> bool:
        started.release()
        return gate.wait(30)

    tasks = [asyncio.create_task(run(hang)) for _ in range(2)]
    for _ in tasks:
        await asyncio.to_thread(started.acquire, timeout=10)
    assert pool.is_saturated
    try:
        yield
    finally:
        gate.set()
        await asyncio.gather(*tasks)


@pytest.fixture(autouse=True)
def _two_threads(settings: Any) -> None:
    settings.THINK_HOOK_THREADS = settings.THINK_TOOL_THREADS = 2


async def test_hanging_tools_do_not_hold_up_the_hooks_of_a_turn(make_room: MakeRoom) -> None:
    room = make_room()
    async with hanging(call_tool_code, threads.tools):
        assert status_of(await room.say("hello")) == "completed"


async def test_a_turn_whose_hooks_get_no_thread_fails_visibly(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = make_room()
    async with hanging(user_code, threads.hooks):
        monkeypatch.setattr(threads, "WAIT_SECONDS", 0.2)
        turn = await room.say("hello")
    assert status_of(turn) == "error"
    assert "No thread for hooks became free" in turn.error_text
