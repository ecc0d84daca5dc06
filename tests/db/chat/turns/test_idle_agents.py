"""Agents that wait are rows: ten thousand of them own no task, no thread and no connection."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from chat.models import AgentInstance
from chat.think import Think
from fibers.core.states import FiberStatus
from fibers.execution.recovery import sweep
from fibers.models import Fiber
from fibers.testing import worker
from fibers.waits import Wait
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)

IDLE = 10_000
WITHOUT_METHOD = 1_000
HANDFUL = 10  # what a process may happen to hold at a moment


class Idle(Think):
    """Has been asked something, and waits."""

    async def ping(self, payload: Any) -> Any:
        return payload


def _make_idle(owner_id: int | None) -> None:
    """Agents each of which has work that is parked, without an end, and work for a deploy that has not come."""
    agents = [AgentInstance(owner_id=owner_id, agent="idle", name=f"idle {number}") for number in range(IDLE)]
    AgentInstance.objects.bulk_create(agents, batch_size=2_000)
    wait = {**Wait(key="q", kind="question").to_json(), "since": None, "until": None}
    parked = [
        Fiber(
            name="chat.agent_fiber:idle.ping",
            payload={"instance_id": agent.pk, "method": "ping", "payload": None},
            status=FiberStatus.PARKED,
            waits=[wait],
            scope=agent.pk,
            attempt=1,
        )
        for agent in agents
    ]
    gone = [Fiber(name="chat.agent_fiber:idle.gone", payload={}, scope=agent.pk) for agent in agents[:WITHOUT_METHOD]]
    Fiber.objects.bulk_create([*parked, *gone], batch_size=1_000)


def _owned() -> tuple[int, int, int]:
    """Tasks of this loop, threads, and open files of this process, connections among them."""
    files = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    return len(asyncio.all_tasks()), threading.active_count(), files


async def _work(room: Room) -> None:
    done = await room.handle.start_fiber("ping", 1, wait_for_completion=True)
    assert done.status == "completed"
    await db(sweep)


async def _most(room: Room, *, rounds: int = 3) -> tuple[int, int, int]:
    """The most that is owned between pieces of work: what the process keeps."""
    found = []
    for _ in range(rounds):
        await _work(room)
        found.append(_owned())
    return max(row[0] for row in found), max(row[1] for row in found), max(row[2] for row in found)


@pytest.mark.long
async def test_ten_thousand_idle_agents_own_no_task_thread_or_connection(make_room: MakeRoom) -> None:
    room = make_room("idle")
    async with worker(look_seconds=0.01):
        await _most(room, rounds=6)  # the process has all of its threads and connections by now
        before = await _most(room)
        await db(_make_idle, room.key.owner_id)
        after = await _most(room)
    assert all(late < early + HANDFUL for early, late in zip(before, after, strict=True)), (before, after)
    assert await db(Fiber.objects.filter(status="parked", attempt=1).count) == IDLE
    assert await db(Fiber.objects.filter(status="pending", attempt=0).count) == WITHOUT_METHOD
