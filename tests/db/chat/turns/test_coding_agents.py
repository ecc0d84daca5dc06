"""The agents that work on code: what each may do, whom it has work for it, and how it learns of that."""

import json

import pytest

from chat.coding import agents
from chat.llm.registry import replaced_models
from chat.llm.scripted import ScriptedModel
from fibers.testing import run_until_idle
from thinkproject.kernel.jsonvalue import dump

from .call_lines import call_line
from .conftest import MakeRoom, Room, status_of

pytestmark = pytest.mark.django_db(transaction=True)


def offered(room: Room) -> set[str]:
    """Names of the tools that the model was offered last."""
    return {each["name"] for each in room.model.requests[-1].get("tools", ())}


async def outputs(room: Room) -> list[tuple[str, str, str]]:
    """Name, state, and output or error of each call."""
    found = [part for message in await room.transcript() for part in message["parts"] if "toolCallId" in part]
    return [(str(part["type"]), str(part["state"]), str(part.get("output") or part.get("errorText"))) for part in found]


async def test_a_plan_reads_and_is_refused_every_change(make_room: MakeRoom) -> None:
    room = make_room("plan")
    await room.handle.workspace.write_file("/AGENTS.md", "Be brief.")
    await room.handle.workspace.write_file("/a.py", "x = 1\n")
    with replaced_models(room.model):
        await room.say(
            call_line("read", "c1", path="/a.py")
            + call_line("edit", "c2", path="/a.py", old_string="1", new_string="2")
            + call_line("write", "c3", path="/b.py", content="")
            + call_line("bash", "c4", script="echo 3 > /a.py")
            + call_line("todo_write", "c5", todos=[{"content": "Change x"}])
            + "say: planned"
        )
    states = [(kind, state) for kind, state, _ in await outputs(room)]
    refused = [("tool-edit", "output-error"), ("tool-write", "output-error"), ("tool-bash", "output-error")]
    assert sorted(states) == sorted(
        [("tool-read", "output-available"), *refused, ("tool-todo_write", "output-available")]
    )
    assert await room.handle.workspace.read_file("/a.py") == "x = 1\n"
    sent = dump(room.model.requests[-1])
    assert "You plan, and change nothing." in sent
    assert "Be brief." in sent
    assert "plan mode" in sent  # the reminder
    assert "general" not in offered(room)


async def test_a_build_has_the_code_explored_and_work_done_in_the_background(make_room: MakeRoom) -> None:
    room = make_room("build")
    await room.handle.workspace.write_file("/a.py", "x = 1\n")
    look = "call tool grep " + json.dumps({"query": "x = 1"}) + "\nsay: Found {results}"
    work = call_line("write", "w1", path="/made.py", content="y = 2\n") + "say: Made /made.py."
    with replaced_models(room.model):
        await room.say(f"/explore {look}")
        assert [(kind, state) for kind, state, _ in await outputs(room)] == [("tool-explore", "output-available")]
        assert "/a.py:1: x = 1" in (await outputs(room))[0][2]
        explored = room.model.requests[0]
        assert {each["name"] for each in explored["tools"]} == {"read", "list", "find", "grep"}
        assert offered(room) >= {"run_command", "todo_write", "ask_user", "explore", "general", "general_in_background"}
        turn = await room.say(call_line("general_in_background", "g1", task=work) + "say: Begun.")
        await run_until_idle(skip_delays=True)
    assert status_of(turn) == "completed"
    assert await room.handle.workspace.read_file("/made.py") == "y = 2\n"  # it works on the same files
    asked, reported = [text for role, text in await room.texts() if role == "user" and "Made /made.py." in text]
    assert asked.startswith("call tool general_in_background")
    assert "general" in reported.lower()  # once, and it was answered
    assert [role for role, _ in await room.texts()][-2:] == ["user", "assistant"]


async def test_a_subclass_has_a_model_of_its_own(make_room: MakeRoom) -> None:
    own = ScriptedModel("say: From my own.")

    class OwnExplorer(agents.Explore):
        """Explores with another model."""

        model = own

    room = make_room("own-explorer")
    with replaced_models(room.model):
        await room.say("Where?")
    assert (await room.texts())[-1] == ("assistant", "From my own.")
    assert (len(own.requests), room.model.requests) == (1, [])
    assert OwnExplorer.route_name() == "own-explorer"
