"""Skills in a turn: the model sees the list, reads one, and runs its script."""

import json
from typing import Any

import pytest

from chat.instance.instance import make_agent
from chat.llm.scripted import ScriptedModel
from chat.think import Think
from chat.tools.skills import SkillsInCode, WorkspaceSkills
from tests.db.chat.turns.agents.everyday import MODELS
from tools_app.code_tool.tool import shared_sandbox
from tools_app.core.guard.reach import written_as
from tools_app.core.origins import Origin

from .conftest import MakeRoom, status_of, text_of

pytestmark = pytest.mark.django_db(transaction=True)

SKILL = "---\nname: double\ndescription: Doubles a number.\n---\nRun scripts/double.js with the number."
SCRIPT = "export default (input) => input * 2"
CALLS = """call tool activate_skill {"name": "double"} id=one
call tool run_skill_script {"name": "double", "path": "scripts/double.js", "input": 21} id=two
say: {result}"""


class Skilled(Think):
    """Has a skill in code, and whatever lies in its workspace."""

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_skills(self) -> list[Any]:
        return [SkillsInCode({"double": (SKILL, {"scripts/double.js": SCRIPT})}), WorkspaceSkills(self.workspace)]


class UnluckyPupil(Think):
    """Its sources of skills fail."""

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_skills(self) -> list[Any]:
        return [object(), SkillsInCode({"bad": "no head"})]


def prompt_of(request: dict[str, Any]) -> str:
    """The system prompt that was sent."""
    return str(request["messages"][0]["content"])


def tools_of(request: dict[str, Any]) -> set[str]:
    """The names of the tools that were declared."""
    return {tool["name"] for tool in request["tools"]}


async def test_a_skill_is_listed_read_and_run(make_room: MakeRoom) -> None:
    shared_sandbox.cache_clear()
    room = make_room("skilled")
    turn = await room.say(CALLS)
    assert status_of(turn) == "completed"
    message = (await room.transcript())[-1]
    outputs = {part["toolCallId"]: part["output"] for part in message["parts"] if "toolCallId" in part}
    assert outputs["one"]["instructions"] == "Run scripts/double.js with the number."
    assert outputs["two"]["value"] == 42
    assert "42" in text_of(message)
    first = room.model.requests[0]
    assert "- double: Doubles a number.\n</skills>" in prompt_of(first)
    assert {"activate_skill", "read_skill_resource", "run_skill_script"} <= tools_of(first)
    await shared_sandbox().close()
    shared_sandbox.cache_clear()


async def test_a_skill_that_was_written_to_the_workspace_counts_from_the_next_turn_on(make_room: MakeRoom) -> None:
    room = make_room("skilled")
    text = SKILL.replace("double", "treble").replace("Doubles", "Trebles")
    written = json.dumps({"path": "/.agents/skills/treble/SKILL.md", "content": text})
    await room.say(f"call tool write {written}\nsay: done")
    await room.say("say: again")
    systems = [prompt_of(request) for request in room.model.requests]
    assert ["treble" in system for system in systems] == [False, False, True]


async def test_a_skill_in_an_uploaded_file_sets_the_guard(make_room: MakeRoom) -> None:
    room = make_room("skilled")
    await room.say('call tool write {"path": "/first.md", "content": "x"}\nsay: done')
    agent = make_agent(room.key)
    assert await agent.workspace.file_exists("/first.md")
    with written_as(Origin.FILE):
        await agent.workspace.write_file("/.agents/skills/evil/SKILL.md", SKILL.replace("double", "evil"))
    await room.say('call tool write {"path": "/note.md", "content": "x"}\nsay: done')
    (question,) = await room.handle.pending_approvals()
    assert question.tool == "write"
    assert await agent.workspace.read_file("/note.md") is None


async def test_skills_that_fail_block_no_turn(make_room: MakeRoom) -> None:
    room = make_room("unlucky-pupil")
    assert status_of(await room.say("say: hello")) == "completed"
    (request,) = room.model.requests
    assert "<skills>" not in prompt_of(request)
    assert "activate_skill" not in tools_of(request)
