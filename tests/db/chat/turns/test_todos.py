"""The to-do list: written by the model, reported in the stream, and as the shown path has it, whatever was undone."""

import json
from typing import Any

import pytest

from chat.instance.instance import make_agent
from chat.streams.reader import read
from chat.think import Think, Tool
from chat.tools.todo import todo_tools
from chat.turns.execution.code.code_tool import code_tool
from sessions_app.messages.services import select_leaf
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import load
from tools_app.core.toolset import Toolset
from tools_app.question_tool import ask_user

from .call_lines import call_line
from .conftest import MakeRoom, Room
from .undo_requests import asked, instance_id, redo, undo

pytestmark = pytest.mark.django_db(transaction=True)


class Lister(Think):
    """Keeps a to-do list, and has code."""

    code_tool = True

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [*todo_tools]


def writes(*contents: str, done: int = 0, call_id: str) -> str:
    """The line that writes a list, of which so many are done."""
    todos = [{"content": each, "status": "completed" if at < done else "pending"} for at, each in enumerate(contents)]
    return call_line("todo_write", call_id, todos=todos)


async def shown(room: Room) -> list[str]:
    """The list as the API has it."""
    found = (await asked(room, "GET", f"/instances/{await instance_id(room)}/todos")).json()["todos"]
    assert {each["priority"] for each in found} <= {"medium"}
    return [f"{each['content']} {each['status']}" for each in found]


async def test_a_list_follows_undo_redo_branches_and_forks(make_room: MakeRoom) -> None:
    room = make_room("lister")
    first = await room.say(writes("a", "b", "c", call_id="c1") + "say: planned")
    assert await shown(room) == ["a pending", "b pending", "c pending"]
    chunks = [load(record.text) for record in await read(first.pk, 0)]
    [reported] = [chunk for chunk in chunks if chunk["type"] == "data-think-todo"]
    assert reported["transient"]
    assert [each["content"] for each in reported["data"]["todos"]] == ["a", "b", "c"]
    second = await room.say(writes("a", "b", done=1, call_id="c2") + "say: went on")  # replaces all of it
    assert await shown(room) == ["a completed", "b pending"]
    assert (await undo(room, second, files=False, messages=True)).status_code == 201
    assert await shown(room) == ["a pending", "b pending", "c pending"]
    path = f"/instances/{await instance_id(room)}/fork"
    forked = (await asked(room, "POST", path, {"message_id": first.assistant_id})).json()
    found = (await asked(room, "GET", f"/instances/{forked['id']}/todos")).json()["todos"]
    assert [each["content"] for each in found] == ["a", "b", "c"]
    assert (await redo(room)).status_code == 201
    assert await shown(room) == ["a completed", "b pending"]
    await undo(room, second, files=False, messages=True)
    await room.say(writes("other", call_id="c3") + "say: otherwise")
    assert await shown(room) == ["other pending"]
    await db(select_leaf, second.session_id, second.assistant_id)
    assert await shown(room) == ["a completed", "b pending"]
    await asked(room, "POST", f"/instances/{await instance_id(room)}/clear")
    assert await shown(room) == []


async def test_a_model_reads_what_it_wrote_in_this_answer_and_before(make_room: MakeRoom) -> None:
    room = make_room("lister")
    await room.say("call tool todo_read {}\nsay: {results}")
    assert json.loads((await room.texts())[-1][1].removesuffix(".")) == {"todos": []}
    await room.say(writes("a", call_id="c1") + "say: one\ncall tool todo_read {}\nsay: {results}")
    assert '"content": "a"' in (await room.texts())[-1][1].replace('":"', '": "')
    await room.say("call tool todo_read {}\nsay: {results}")
    assert '"content": "a"' in (await room.texts())[-1][1].replace('":"', '": "')


async def test_a_list_that_is_none_is_refused_and_code_cannot_write_one(make_room: MakeRoom) -> None:
    room = make_room("lister")
    await room.say(call_line("todo_write", "c1", todos=[{"content": "a", "status": "half done"}]) + "say: {results}")
    assert "in_progress" in (await room.texts())[-1][1]
    agent = make_agent(room.key)
    assert isinstance(agent, Think)
    code = code_tool(agent, Toolset([*todo_tools, ask_user]), None)
    assert code is not None
    assert ("ask_user" in code.description, "todo_write" in code.description) == (True, False)
    assert await shown(room) == []
