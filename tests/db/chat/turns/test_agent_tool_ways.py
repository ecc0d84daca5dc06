"""Ways into a run and out of it: from code, with shared files, its reports, its questions, strangers' texts."""

import asyncio
import json
import time
from typing import Any

import pytest
from django.db.models.functions import Now

from chat.conversations.guarding import guard_state
from chat.errors import AgentNotFound, InputInvalid, TurnConflict
from chat.models import Turn
from chat.reads.approvals import pending_approvals
from chat.streams.reader import read
from fibers.models import Fiber
from fibers.testing import crash_after, run_until_idle, worker
from tests.db.chat.turns.agents.coding import sandbox_closed
from tests.db.chat.turns.agents.delegating import (
    ENDED,
    WORKED,
    Chief,
    Errand,
    call,
    instance_of,
    nothing_delegated,
    only_run,
    runs,
    turns_of,
)
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import load
from tools_app.models import ToolCallRecord
from tools_app.models.mcp import McpServer

from .conftest import MakeRoom, Room, status_of, text_of
from .working import one_after_another

__all__ = ["nothing_delegated"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)


async def test_code_outside_of_a_turn_waits_for_the_end_and_the_same_id_is_the_same_run(make_room: MakeRoom) -> None:
    room = make_room("chief")
    async with worker():
        first = await room.handle.run_agent_tool(Errand, "say: well done", run_id="report-7")
        again = await room.handle.run_agent_tool(Errand, "say: never asked", run_id="report-7")
    assert first == again == {"ok": True, "runId": "report-7", "status": "completed", "summary": "well done"}
    assert len(await turns_of(room, "errand")) == 1
    child = room.handle.sub_agent(Errand, "report-7")
    assert child.parent_agent is not None
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
    task = 'call tool report {"fraction": 0.5} id=r\nsay: and\ncall tool report {"fraction": 1} id=s\nsay: ok'
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
    [milestone] = [part["data"] for part in answer["parts"] if part["type"] == "data-agent-milestone"]
    reached_at = milestone.pop("at")  # milliseconds: published clients read a number
    assert isinstance(reached_at, int)
    assert time.time() - 600 < reached_at / 1000 < time.time() + 1
    assert milestone == {"name": "half", "sequence": 0, "data": {"percent": 50}}
    assert not [part for part in answer["parts"] if part["type"] == "data-agent-progress"]


async def test_milestones_keep_the_keys_of_their_data_and_are_numbered_on(make_room: MakeRoom) -> None:
    room = make_room("chief")
    own = {"name": "mine", "sequence": 7, "at": "noon"}
    noted: list[dict[str, Any]] = [own, own, {"name": "his"}]
    task = one_after_another(  # calls of one step run at the same time
        *(
            f"call tool note {json.dumps({'name': name, 'data': data})} id=n{number}"
            for number, (name, data) in enumerate(zip(("a", "b", "a"), noted, strict=True))
        )
    )
    await room.say(f"{call('errand', task)}\nsay: {{result}}")
    run = await only_run()
    assert run.turn_id is not None
    chunks = [load(record.text) for record in await read(run.turn_id, 0)]
    sent = [chunk["data"] for chunk in chunks if chunk["type"] == "data-agent-milestone"]
    assert [(each["name"], each["sequence"], each["data"]) for each in sent] == [
        ("a", 0, noted[0]), ("b", 1, noted[1]), ("a", 2, noted[2]),
    ]  # fmt: skip
    answer = (await room.handle.sub_agent(Errand, run.run_id).messages())[-1]
    parts = [part["data"] for part in answer["parts"] if part["type"] == "data-agent-milestone"]
    assert [(each["name"], each["data"]) for each in parts] == [("a", noted[2]), ("b", noted[1])]


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


async def test_a_childs_answer_brings_along_that_it_has_read_a_strangers_text(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await room.say(f"{call('errand', 'call tool mail {} id=m' + chr(10) + 'say: {result}')}\nsay: {{result}}")
    guard = await db(guard_state, await instance_of(room.key))
    assert (guard.is_guarded, [text.origin for text in guard.texts]) == (True, ["web"])


async def test_a_task_brings_along_that_the_parent_has_read_a_strangers_text(make_room: MakeRoom) -> None:
    room = make_room("reading-chief")
    await room.say(f"call tool mail {{}} id=m\nsay: read\n{call('errand', 'say: ok', 'two')}\nsay: {{result}}")
    run = await only_run()
    child = await instance_of(room.handle.sub_agent(Errand, run.run_id).key)
    assert (await db(guard_state, child)).is_guarded


async def test_a_child_has_the_mcp_servers_of_its_parent_if_it_is_to(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await room.say("say: hello")
    parent = await instance_of(room.key)
    tools = [{"name": "seek_recipes", "description": "Find.", "inputSchema": {"type": "object", "properties": {}}}]
    server = {"name": "Docs", "transport": "http", "url": "https://docs.example/mcp", "state": "ready"}
    await db(
        lambda: McpServer.objects.create(
            id="docs",
            owner_id=parent.owner_id,
            scope="instance",
            instance_id=parent.pk,
            is_trusted=True,
            listed_at=Now(),
            catalogue={"tools": tools},
            **server,
        )
    )
    MODELS.pop("errand", None)
    for number, name in enumerate(("errand", "served")):
        await room.say(f"{call(name, f'say: {name}', f'c{number}')}\nsay: {{result}}")
    asked = [json.dumps(request["tools"]) for request in MODELS["errand"].requests]
    assert ["seek_recipes" in tools for tools in asked] == [False, True]


async def test_code_of_a_model_has_two_agents_work_for_it(make_room: MakeRoom) -> None:
    room = make_room("coding-chief")
    first, second = 'tools.errand({task: "call tool work {} id=w\\nsay: first"})', 'tools.errand({task: "say: second"})'
    code = f"const one = await {first}; const two = await {second}; one.summary + ' ' + two.summary"
    async with sandbox_closed():
        turn = await room.say(f"call tool execute {json.dumps({'code': code})} id=one\nsay: {{result}}")
    assert status_of(turn) == "completed"
    assert "first" in text_of((await room.transcript())[-1])
    assert "second" in text_of((await room.transcript())[-1])
    assert len(WORKED) == 1
    assert len(await turns_of(room, "errand")) == 2


async def test_a_run_that_a_person_has_to_approve_begins_then(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await room.say(f"{call('asked', 'call tool hold {} id=two' + chr(10) + 'say: It is {result}.')}\nsay: {{result}}")
    assert await runs() == []
    [asked] = await room.handle.pending_approvals()
    assert await room.handle.approve_execution(asked.id)
    with crash_after("model:0"):
        await run_until_idle(skip_delays=True)
    run = await only_run()
    assert run.outcome is None
    assert await room.handle.sub_agent(Errand, run.run_id).answer_wait("two", "blue", wait="question")
    await run_until_idle(skip_delays=True)
    assert ((await only_run()).outcome or {})["summary"] == "It is blue."
    assert "It is blue." in json.dumps(await room.transcript())
    assert {turn.fiber.status for turn in await turns_of(room, "chief")} == {"completed"}


async def test_the_question_of_a_child_is_in_the_list_of_its_parents_owner(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await room.say(f"{call('errand', 'call tool pay {} id=pay')}\nsay: {{result}}")
    listed = await db(lambda: pending_approvals(room.key.owner_id))
    assert [(item.agent, item.tool) for item in listed.items] == [("errand", "pay")]


async def test_runs_are_kept_until_they_are_cleared(make_room: MakeRoom) -> None:
    room = make_room("chief")
    script = f"{call('errand', 'say: fine')}\n{call('later', 'call tool hold {} id=h', 'two')}\nsay: {{results}}"
    await room.say(script)
    assert await room.handle.clear_agent_runs(older_than_seconds=3600) == 0
    assert await room.handle.clear_agent_runs() == 1
    assert [run.call_id for run in await runs()] == ["two"]
    assert [child.agent for child in await room.handle.list_sub_agents()] == ["errand"]
    assert (await room.transcript())[-1]["parts"]


async def test_of_a_burst_of_reports_few_are_sent_and_the_last_one_is(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await room.say(f"{call('errand', 'call tool burst {} id=b' + chr(10) + 'say: ok')}\nsay: {{result}}")
    run = await only_run()
    assert run.progress == {"fraction": 1.0, "message": "all of it"}
    assert run.turn_id is not None
    chunks = [load(record.text) for record in await read(run.turn_id, 0)]
    sent = [chunk["data"] for chunk in chunks if chunk["type"] == "data-agent-progress"]
    assert sent[-1] == run.progress
    assert len(sent) < 20
