"""Agents whose background work does what a test says, for the tests of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from chat.think import CompletedFiber, LostFiber, RunningFiber, Think
from fibers.context import current_fiber
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from fibers.testing import die
from tests.db.chat.turns.conftest import Room
from thinkproject.kernel.aio import db

Script = Callable[[Any, RunningFiber], Awaitable[Any]]
SCRIPTS: dict[str, Script] = {}
GIVEN: list[Any] = []


class Busy(Think):
    """Its background work does what a test says."""

    async def work(self, payload: Any, fiber: RunningFiber) -> Any:
        return await SCRIPTS[payload](payload, fiber)

    async def short(self) -> str:
        return "short"

    async def echo(self, payload: Any) -> Any:
        return payload

    async def _hidden(self) -> None: ...

    def sync(self) -> None: ...

    def on_fiber_complete(self, context: CompletedFiber) -> None:
        GIVEN.append(context)


class Deciding(Busy):
    """Decides about lost work."""

    async def on_fiber_recovered(self, fiber: LostFiber) -> None:
        GIVEN.append(fiber)
        if "hook" in SCRIPTS:
            await SCRIPTS["hook"](fiber, None)  # type: ignore[arg-type]  # it asks for nothing


class ByHand(Busy):
    """Takes up lost work when code asks for it."""

    fibers = False


def scripted(function: Script, name: str = "script") -> str:
    SCRIPTS[name] = function
    return name


async def dies(payload: Any, fiber: RunningFiber) -> Any:
    """Stash where it is, and lose its worker twice."""
    seen = {"attempt": fiber.attempt, "retries": fiber.retry_count, "snapshot": fiber.snapshot}
    if fiber.attempt <= 2:
        await fiber.stash({"attempt": fiber.attempt})
        await db(kill_here)
    return seen


def kill_here() -> None:
    """Let the worker of the fiber that runs here die."""
    context = current_fiber()
    assert context is not None
    die(context)


async def always_dies(payload: Any, fiber: RunningFiber) -> Any:
    await db(kill_here)


@asynccontextmanager
async def running(room: Room, script: Script, **options: Any) -> AsyncIterator[str]:
    """A fiber whose method runs while the block does."""
    started = asyncio.Event()

    async def wrapped(payload: Any, fiber: RunningFiber) -> Any:
        started.set()
        return await script(payload, fiber)

    fiber = await room.handle.start_fiber("work", scripted(wrapped), **options)
    task = asyncio.create_task(run_fiber(await pk_of(fiber.id)))
    async with asyncio.timeout(10):
        await started.wait()
    try:
        yield fiber.id
    finally:
        await task


async def pk_of(fiber_id: str) -> str:
    return await db(
        lambda: Fiber.objects.filter(payload__contains=f'"{fiber_id}"').values_list("pk", flat=True).first() or fiber_id
    )


async def rows() -> list[Fiber]:
    return await db(lambda: list(Fiber.objects.filter(scope__isnull=False)))


@pytest.fixture(autouse=True)
def nothing_scripted() -> None:
    SCRIPTS.clear()
    GIVEN.clear()
