"""An agent that schedules work of its own. Importing this module serves it."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from django.db.models.functions import Now

from chat.think import Occurrence, ScheduleView, Think
from fibers.models.schedules import Schedule
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db
from thinkproject.kernel.retry import RetryPolicy

RAN: list[tuple[Any, ...]] = []
SPOKEN: dict[str, asyncio.Event] = {}
QUICK = RetryPolicy(attempts=3, first_seconds=0.001, max_seconds=0.001)


class Planner(Think):
    """Schedules work of its own."""

    schedule_tools = True
    tasks: ClassVar[Any] = {}

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_scheduled_tasks(self) -> Any:
        if isinstance(self.tasks, Exception):
            raise self.tasks
        return self.tasks

    async def remind(self, payload: Any, occurrence: Occurrence) -> None:
        RAN.append(("remind", payload, occurrence))

    def stumble(self, payload: Any, occurrence: Occurrence) -> None:
        RAN.append(("stumble", occurrence.key))
        if len(RAN) < payload:
            raise RuntimeError("not yet")

    async def speak(self, payload: Any, occurrence: Occurrence) -> None:
        saved = await self.save_messages(f"say: {payload}")
        RAN.append(("spoke", saved.status))
        SPOKEN["now"].set()

    async def sweep_up(self, occurrence: Occurrence) -> None:
        RAN.append(("sweep_up", occurrence))


async def run_due(schedule: ScheduleView | Schedule) -> None:
    """Let a schedule be due, and run everything."""
    await db(lambda: Schedule.objects.filter(pk=schedule.id).update(next_at=Now() - timedelta(seconds=1)))
    await run_until_idle(skip_delays=True)


def rows() -> list[Schedule]:
    return list(Schedule.objects.order_by("declaration", "pk"))


@pytest.fixture(autouse=True)
def no_tasks() -> Iterator[None]:
    RAN.clear()
    SPOKEN["now"] = asyncio.Event()
    Planner.tasks = {}
    yield
    Planner.tasks = {}
