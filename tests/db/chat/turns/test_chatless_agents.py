"""Agents without a chat work in the background as those with one do: fibers, queue, schedules, retries, sub-agents."""

import asyncio
from collections.abc import Iterator

import pytest

from chat.agent.values.runs import Detached
from chat.errors import FiberMethodMissing, InputInvalid, TurnConflict
from chat.instance.instance import started_agent
from fibers.errors import ScheduleInvalid
from fibers.models import Fiber
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.chatless import HEARD, PinBoard, PinHelper
from tests.db.chat.turns.agents.fibering import rows
from tests.db.chat.turns.agents.planning import run_due
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _nothing_heard() -> Iterator[None]:
    HEARD.clear()
    yield
    HEARD.clear()


@pytest.fixture
def board_room(make_room: MakeRoom) -> Room:
    """A room with the agent without a chat."""
    return make_room("pin-board")


async def board(room: Room) -> PinBoard:
    agent = await started_agent(room.key)
    assert isinstance(agent, PinBoard)
    return agent


async def test_a_spawned_method_is_tried_again_and_its_end_is_heard(board_room: Room) -> None:
    fiber_id = await board_room.handle.spawn_fiber("work", {"failures": 1})
    await run_until_idle()
    done = await board_room.handle.get_fiber(fiber_id)
    assert done is not None
    assert (done.status, done.result, done.retry_count) == ("completed", {"failures": 1}, 1)
    assert HEARD == [
        ("work", {"failures": 1}, 0),
        ("work", {"failures": 1}, 1),
        ("complete", "work", {"failures": 1}),
    ]


async def test_the_object_itself_has_the_same_methods(board_room: Room) -> None:
    agent = await board(board_room)
    queued = await agent.queue("work", {"failures": 0})
    spawned = await agent.spawn_fiber("work", {"failures": 0})
    made = await agent.schedule(3600, agent.tick, {"about": "tea"})
    assert [call.id for call in await agent.get_queues()] == [queued]
    assert {fiber.id for fiber in await agent.list_fibers()} >= {spawned}
    assert (await agent.get_schedule(made.id)) == made
    tries: list[int] = []

    async def flaky() -> str:
        tries.append(1)
        if len(tries) < 2:
            raise ConnectionError("not yet")
        return "fine"

    assert await agent.retry(flaky, first_seconds=0.001) == "fine"
    await run_until_idle()
    assert await agent.get_queues() == []
    assert [name for name, *_ in HEARD].count("work") == 2


async def test_a_name_that_only_agents_with_a_chat_have_is_its_own(board_room: Room) -> None:
    await board_room.handle.spawn_fiber("compact", {"a": 1})
    made = await board_room.handle.schedule(3600, "compact", {"b": 2})
    await run_until_idle()
    await run_due(made)
    assert [each for each in HEARD if each[0] == "compact"] == [("compact", {"a": 1}), ("compact", {"b": 2})]
    names = await db(lambda: list(Fiber.objects.values_list("name", flat=True)))
    assert "chat.scheduled_run:pin-board.compact" in names  # only a worker that has the method takes it


@pytest.mark.parametrize("name", ["missing", "tick", "spawn_fiber", "on_fiber_complete"])
async def test_what_is_no_method_of_its_own_is_refused(board_room: Room, name: str) -> None:
    with pytest.raises(FiberMethodMissing, match="PinBoard has no async method"):
        await board_room.handle.spawn_fiber(name)
    assert await rows() == []


async def test_a_lost_worker_is_heard_of_and_the_work_goes_on(board_room: Room) -> None:
    fiber_id = await board_room.handle.spawn_fiber("work", {"dies": True})
    await run_until_idle()
    done = await board_room.handle.get_fiber(fiber_id)
    assert done is not None
    assert (done.status, done.snapshot, done.retry_count) == ("completed", {"retry": 1}, 1)
    assert ("lost", "work", {"retry": 0}) in HEARD


async def test_a_schedule_calls_its_method_and_a_prompt_is_refused(board_room: Room) -> None:
    made = await board_room.handle.schedule(3600, "tick", {"about": "tea"})
    await run_due(made)
    assert HEARD == [("tick", {"about": "tea"}, False)]
    with pytest.raises(ScheduleInvalid, match="does not chat"):
        await board_room.handle.schedule(3600, prompt="Say good morning.")
    assert await board_room.handle.get_schedules() == []


async def test_it_has_others_work_and_hears_of_the_end(board_room: Room) -> None:
    agent = await board(board_room)
    outcome = asyncio.create_task(agent.run_agent_tool(PinHelper, "say: All is well."))
    while not outcome.done():
        await run_until_idle(skip_delays=True)
        await asyncio.sleep(0)
    assert (await outcome)["summary"] == "All is well."
    await run_until_idle(skip_delays=True)
    assert [("run", (await outcome)["runId"], "completed")] == HEARD
    assert [child.agent for child in await agent.list_sub_agents()] == ["pin-helper"]
    talk = agent.sub_agent(PinHelper, "mine")
    assert talk.parent_agent.key == board_room.key


async def test_no_message_can_wake_it_and_nobody_works_for_it_as_a_child(board_room: Room) -> None:
    agent = await board(board_room)
    with pytest.raises(InputInvalid, match="no message can wake it"):
        await agent.run_agent_tool(PinHelper, "say: hello", detached=Detached(wakes_parent=True))
    with pytest.raises(TurnConflict, match="does not chat"):
        await agent.run_agent_tool(PinBoard, "say: hello")
    assert await agent.list_sub_agents() == []
