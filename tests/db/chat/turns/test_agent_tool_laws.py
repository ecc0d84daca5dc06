"""Whatever happens to parents and children, in whatever order, and wherever a worker dies: each run ends once."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any

import pytest

from chat.instance.handle import AgentHandle
from chat.instances.rows import key_of
from chat.models import AgentInstance, Turn
from chat.models.runs import AgentRun
from chat.operations.removal import delete_instance
from chat.turns.state.parking import answer_wait
from fibers.models import Fiber
from fibers.testing import crash_after, run_until_idle, worker
from tests.db.chat.turns.agents.delegating import ENDED, WORKED, call, nothing_delegated, runs
from thinkproject.kernel.aio import db
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom, Room, text_of

__all__ = ["nothing_delegated"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)

STEPS = 12
TASKS = (
    "say: plain",
    "call tool work {} id=w\nsay: worked",
    "call tool hold {} id=h\nsay: {result}",
    "call tool pay {} id=p\nsay: {result}",
    "error 400",
)
PROBES = ("model:0", "model:1", "call:w", "call:h", "final", "hooks", "ending")


@pytest.fixture(autouse=True)
def _no_limits(settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = settings.THINK_DELEGATED_TURNS_PER_MINUTE = 0


class Walk:
    """Random things that happen to a conversation whose agents delegate."""

    def __init__(self, room: Room, seed: int) -> None:
        self.room = room
        self.random = random.Random(seed)
        self.calls = 0

    def task(self) -> str:
        task = self.random.choice(TASKS)
        return call("errand", task, "deep") if self.random.random() < 0.3 else task

    async def ask(self) -> None:
        lines = []
        for _ in range(self.random.randint(1, 3)):
            self.calls += 1
            task = self.task()
            name = "middle" if "deep" in task else self.random.choice(["errand", "errand", "later", "wake"])
            lines.append(call(name, task, f"c{self.calls}"))
        await self.room.admit("\n".join([*lines, "say: {results}"]))

    async def answer(self) -> None:
        waiting = await db(lambda: list(Turn.objects.filter(fiber__status="parked", instance__agent="errand")))
        if waiting:
            turn = self.random.choice(waiting)
            await db(answer_wait_of, turn.pk)

    async def decide(self) -> None:
        for child in await db(lambda: list(AgentInstance.objects.filter(agent="errand"))):
            handle = AgentHandle(key_of(child))
            for asked in await handle.pending_approvals():
                if self.random.random() < 0.5:
                    await handle.approve_execution(asked.id)
                else:
                    await handle.reject_execution(asked.id)

    async def abort(self) -> None:
        found = await runs()
        if found:
            run = self.random.choice(found)
            parent = await db(lambda: AgentInstance.objects.get(pk=run.parent_id))
            await AgentHandle(key_of(parent)).abort_agent_run(run.run_id)

    async def delete(self) -> None:
        children = await db(lambda: list(AgentInstance.objects.exclude(parent=None)))
        if children:
            await db(delete_instance, self.random.choice(children))

    async def stop(self) -> None:
        await self.room.handle.abort_all_requests()

    async def clear(self) -> None:
        await self.room.handle.clear()

    async def step(self) -> None:
        ways: list[Callable[[], Awaitable[None]]] = [
            self.ask,
            self.ask,
            self.ask,
            self.answer,
            self.answer,
            self.decide,
        ]
        rare = [self.abort, self.delete, self.stop, self.clear]
        act = self.random.choice(ways if self.random.random() < 0.75 else rare)
        with ExitStack() as crashes:
            if self.random.random() < 0.5:
                crashes.enter_context(crash_after(self.random.choice(PROBES)))
            await act()
            await run_until_idle()

    async def wind_down(self) -> None:
        """Answer and decide until nothing is under way."""
        for _ in range(60):
            await run_until_idle(skip_delays=True)
            if not await db(is_under_way):
                return
            await self.decide()
            for turn in await db(lambda: list(Turn.objects.filter(fiber__status="parked", instance__agent="errand"))):
                await db(answer_wait_of, turn.pk)


def answer_wait_of(turn_id: str) -> None:
    turn = Turn.objects.select_related("instance").filter(pk=turn_id).first()
    if turn is not None and ToolCallRecord.objects.filter(turn_id=turn_id, call_id="h").exists():
        answer_wait(key_of(turn.instance), "h", "blue", wait="question")


def is_under_way() -> bool:
    return (
        Fiber.objects.filter(finished_at=None).exclude(name="chat.expire_question").exists()
        or AgentRun.objects.filter(finished_at=None).exists()
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
async def test_each_run_ends_once_and_nothing_is_left(make_room: MakeRoom, seed: int) -> None:
    walk = Walk(make_room("hooked-chief"), seed)
    for _ in range(STEPS):
        await walk.step()
    await walk.wind_down()
    found = {run.run_id: run for run in await runs()}
    assert [run.run_id for run in found.values() if run.outcome is None or run.finished_at is None] == []
    assert await db(lambda: list(Fiber.objects.filter(finished_at=None).values_list("name", "status"))) == []
    assert not await db(ToolCallRecord.objects.filter(status__in=[CallStatus.ASKED, CallStatus.WAITING]).exists)
    for ended in ENDED:
        if ended.run_id in found:  # an end is reported as it is stored, however often
            assert ended.outcome == found[ended.run_id].outcome
    own = {run.run_id for run in found.values() if await db(is_of_chief, run.pk)}
    assert own <= {ended.run_id for ended in ENDED}
    await the_results_are_the_outcomes(walk.room, found)


def is_of_chief(run_id: str) -> bool:
    return AgentRun.objects.filter(pk=run_id, parent__agent="hooked-chief").exists()


async def the_results_are_the_outcomes(room: Room, found: dict[str, AgentRun]) -> None:
    parts = [part for message in await room.transcript() for part in message["parts"] if "toolCallId" in part]
    for part in parts:
        output = part.get("output")
        if isinstance(output, dict) and output.get("runId") in found and output["status"] != "running":
            assert output == found[output["runId"]].outcome


@pytest.mark.long
async def test_many_conversations_of_one_person_delegate_and_are_stopped_at_once(make_room: MakeRoom) -> None:
    rooms = [make_room("chief", f"room {number}") for number in range(6)]
    tasks = [call("errand", f"call tool work {{}} id=w\nsay: {number}", f"c{number}") for number in range(2)]
    script = "\n".join([*tasks, "say: {results}"])

    async def live(room: Room, *, is_stopped: bool) -> None:
        await room.admit(script)
        await room.handle.run_agent_tool("errand", "say: from code", run_id="by code")
        if is_stopped:
            await room.handle.abort_all_requests()
        assert await room.handle.wait_until_stable(30)

    async with worker():
        await asyncio.gather(*(live(room, is_stopped=number % 2 == 0) for number, room in enumerate(rooms)))
    await run_until_idle(skip_delays=True)
    found = await runs()
    assert [run.run_id for run in found if run.outcome is None] == []
    assert len(WORKED) == len(set(WORKED))
    for room in rooms[1::2]:
        turn = await db(Turn.objects.get, instance__name=room.key.name, instance__parent=None)
        assert turn.error_text == ""
        assert text_of((await room.transcript())[-1]).count("completed") == 2
    assert not await db(is_under_way)
