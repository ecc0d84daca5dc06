"""Ways into a run and out of it: from code, with shared files, its reports, its questions, strangers' texts."""

import asyncio
import json
from typing import Any

import pytest
from django.db.models.functions import Now

from chat.errors import AgentNotFound, InputInvalid, TurnConflict
from chat.models import Turn
from chat.streams.reader import read
from fibers.models import Fiber
from fibers.testing import crash_after, run_until_idle, worker
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import load
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom, Room, status_of, text_of
from .delegating import ENDED, WORKED, Chief, Errand, call, only_run, runs, turns_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _nothing_noted() -> None:
    ENDED.clear()
    WORKED.clear()


async def test_code_outside_of_a_turn_waits_for_the_end_and_the_same_id_is_the_same_run(make_room: MakeRoom) -> None:
    room = make_room("chief")
    async with worker():
        first = await room.handle.run_agent_tool(Errand, "say: well done", run_id="report-7")
        again = await room.handle.run_agent_tool(Errand, "say: never asked", run_id="report-7")
    assert first == again == {"ok": True, "runId": "report-7", "status": "completed", "summary": "well done"}
    assert len(await turns_of(room, "errand")) == 1
    child = room.handle.sub_agent(Errand, "report-7")
    assert child.parent_agent.key.name == room.key.name
    with pytest.raises(TurnConflict):
        await room.handle.run_agent_tool("middle", "say: no", run_id="report-7")


@pytest.mark.parametrize(("agent", "options"), [("nothing", {}), ("errand", {"run_id": "a\0b"})])
async def test_what_cannot_be_a_run_is_refused_and_leaves_nothing(
    make_room: MakeRoom, agent: str, options: dict[str, Any]
) -> None:
    room = make_room("chief")
    with pytest.raises((AgentNotFound, InputInvalid)):
        await room.handle.run_agent_tool(agent, "say: no", **options)
    assert await runs() == []


async def test_two_callers_with_one_id_have_one_run(make_room: MakeRoom) -> None:
    room = make_room("chief")
    async with worker():
        found = await asyncio.gather(
            *(room.handle.run_agent_tool(Errand, "say: once", run_id="the-one") for _ in range(4))
        )
    assert {one["summary"] for one in found} == {"once"}
    assert len(await turns_of(room, "errand")) == 1


async def test_a_child_with_shared_files_works_on_those_of_its_parent(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await room.handle.workspace.write_file("notes.txt", "from above")
    calls = ('call tool read {"path": "notes.txt"} id=r', 'call tool write {"path": "below.txt", "content": "x"} id=w')
    task = "\n".join([*calls, "say: {results}"])
    await room.say(f"{call('shared', task)}\nsay: {{result}}")
    run = await only_run()
    assert "from above" in json.dumps(run.outcome)
    assert await room.handle.workspace.exists("below.txt")
    await room.say(f"{call('errand', task, 'two')}\nsay: {{result}}")
    assert "from above" not in json.dumps((await runs())[1].outcome)


async def test_reports_of_a_child_are_in_its_stream_and_on_its_run(make_room: MakeRoom) -> None:
    room = make_room("chief")
    task = 'call tool report {"fraction": 0.5} id=r\ncall tool report {"fraction": 1} id=s\nsay: ok'
    with crash_after("call:r"):
        await room.say(f"{call('errand', task)}\nsay: {{result}}")
    run = await only_run()
    assert run.progress == {"fraction": 1.0, "message": "half of it"}
    assert run.turn_id is not None
    chunks = [load(record.text) for record in await read(run.turn_id, 0)]
    progress = [chunk for chunk in chunks if chunk["type"] == "data-agent-progress"]
    assert progress[-1]["data"]["fraction"] == 1.0
    assert all(chunk["transient"] for chunk in progress)
    answer = (await room.handle.sub_agent(Errand, run.run_id).messages())[-1]
    [milestone] = [part for part in answer["parts"] if part["type"] == "data-agent-milestone"]
    assert (milestone["data"]["name"], milestone["data"]["percent"], milestone["data"]["sequence"]) == ("half", 50, 0)
    assert not [part for part in answer["parts"] if part["type"] == "data-agent-progress"]


async def test_hooks_of_the_parent_get_every_end(make_room: MakeRoom) -> None:
    room = make_room("hooked-chief")
    await room.say(f"{call('errand', 'say: fine')}\n{call('errand', 'error 400', 'two')}\nsay: {{results}}")
    assert sorted((run.call_id, (run.outcome or {})["ok"]) for run in ENDED) == [("one", True), ("two", False)]


async def test_a_question_of_a_child_that_runs_out_ends_its_run(make_room: MakeRoom) -> None:
    room = make_room("chief")
    turn = await room.say(f"{call('errand', 'call tool pay {} id=pay')}\nsay: {{result}}")

    def let_it_run_out() -> None:
        ToolCallRecord.objects.filter(call_id="pay").update(expires_at=Now())
        Fiber.objects.filter(name="chat.expire_question").update(status="pending", finished_at=None, available_at=Now())

    await db(let_it_run_out)
    await run_until_idle()
    outcome = (await only_run()).outcome
    assert outcome is not None
    assert (outcome["status"], outcome["error"]) == ("interrupted", "Nobody answered in time.")
    assert status_of(await room.turn(turn.pk)) == "completed"


async def test_a_person_who_takes_over_a_child_ends_its_run_with_the_last_answer(make_room: MakeRoom) -> None:
    room = make_room("chief")
    turn = await room.say(f"{call('errand', 'call tool pay {} id=pay')}\nsay: {{result}}")
    run = await only_run()
    child = Room(room.handle.sub_agent(Errand, run.run_id).key)
    await child.say("say: Never mind, all is done.")
    assert status_of(await room.turn(turn.pk)) == "completed"
    outcome = (await only_run()).outcome
    assert outcome is not None
    assert outcome["summary"] == "Never mind, all is done."
    assert WORKED == []


async def test_a_denied_question_is_the_childs_own_to_go_on_from(make_room: MakeRoom) -> None:
    room = make_room("chief")
    task = "call tool pay {} id=pay\nsay: Then not."
    turn = await room.say(f"{call('errand', task)}\nsay: {{result}}")
    child = room.handle.sub_agent(Errand, (await only_run()).run_id)
    [asked] = await child.pending_approvals()
    assert await child.reject_execution(asked.id, "too much")
    await run_until_idle(skip_delays=True)
    assert status_of(await room.turn(turn.pk)) == "completed"
    assert ((await only_run()).outcome or {})["summary"] == "Then not."


async def test_agents_at_rest_hold_no_fiber(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await room.say(f"{call('errand', 'say: fine')}\nsay: {{result}}")
    await room.say(f"{call('later', 'say: fine', 'two')}\nsay: {{result}}")
    await run_until_idle(skip_delays=True)
    assert not await db(Fiber.objects.filter(finished_at=None).exists)


async def test_a_sub_agent_of_an_agent_is_opened_by_class_and_name(make_room: MakeRoom) -> None:
    room = make_room("chief")
    child = room.handle.sub_agent(Errand, "helper")
    assert not await room.handle.has_sub_agent(Errand, "helper")
    async with worker():
        await child.chat("say: here")
    assert await room.handle.has_sub_agent(Errand, "helper")
    [listed] = await room.handle.list_sub_agents(Errand)
    assert (listed.agent, listed.name, listed.status, listed.turn_count, listed.run) == (
        "errand",
        "helper",
        "idle",
        1,
        None,
    )
    assert await room.handle.list_sub_agents(Chief) == []
    assert text_of((await child.messages())[-1]) == "here"
    assert await db(Turn.objects.count) == 1
