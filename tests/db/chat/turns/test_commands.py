"""Slash commands of a class: calls before the answer, sub-agents that the model goes on from; a person's scripts."""

import json
from typing import Any, ClassVar

import pytest

from chat.core.commands import SUMMARISE_TEXT, Command
from chat.llm.scripted import ScriptedModel
from chat.models import Delivery
from chat.think import Permission, Think, Tool
from chat.turns.admission.intake import Program, Regenerate
from tests.db.chat.turns.agents.answering import Desk, on_record, turns_of
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.jsonvalue import dump

from .call_lines import call_line
from .conftest import MakeRoom, Room, status_of
from .undo_requests import asked

HELLO = "Hello, Ann B. and Cem and Dora."

pytestmark = pytest.mark.django_db(transaction=True)


class Fowler(Think):
    """Finds things out for another one."""

    commands = (Command("greet", "Greet $1 kindly."),)

    def get_model(self) -> Any:
        return MODELS["helper"]


class Commander(Think):
    """Has commands, and a shell for people."""

    commands: ClassVar[tuple[Command, ...]] = (
        Command("greet", "say: Hello, $1 and $2.", "Greet people"),
        Command("show", "Look at !`cat $1`\ncall tool bash {}\nsay: It has {results}"),
        Command("ask", "$ARGUMENTS", agent="fowler"),
        Command("other", "say: From the other.", model="scripted/other"),
    )
    user_shell = "bash"

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [self.agent_tool(Fowler)]


class HastyCommander(Commander):
    """Answers the newest message alone."""

    message_concurrency = "latest"


class CarefulCommander(Commander):
    """Asks before it runs anything."""

    permissions = (Permission.ask("bash"),)


async def parts(room: Room) -> list[tuple[str, str]]:
    """Name and state of each call."""
    found = [part for message in await room.transcript() for part in message["parts"] if "toolCallId" in part]
    return [(part["type"], part["state"]) for part in found]


async def test_a_template_takes_the_place_of_the_command_whoever_sends_it(make_room: MakeRoom) -> None:
    room = make_room("commander")
    turn = await room.say('/greet "Ann B." Cem and Dora')
    assert await room.texts() == [("user", "say: Hello, Ann B. and Cem and Dora."), ("assistant", HELLO)]
    [said, _] = await room.transcript()
    assert said["metadata"]["command"] == {"name": "greet", "arguments": '"Ann B." Cem and Dora'}
    undo = (await asked(room, "GET", f"/turns/{turn.pk}/undo")).json()
    assert undo["question"] == '/greet "Ann B." Cem and Dora'  # which can be sent again
    await room.say(Regenerate(message_id=turn.assistant_id))
    await room.say(Program(messages=[{"role": "user", "parts": [{"type": "text", "text": "/greet x y"}]}]))
    assert (await room.texts())[-1] == ("assistant", "Hello, x and y.")
    await room.say("/unknown say")
    assert (await room.texts())[-2] == ("user", "/unknown say")
    listed = (await asked(room, "GET", "/agents/commander")).json()
    assert listed["commands"][0] == {"name": "greet", "description": "Greet people", "takes_text": True}
    assert listed["has_shell"]


async def test_a_script_runs_before_the_model_is_asked_and_again_for_another_answer(make_room: MakeRoom) -> None:
    room = make_room("commander")
    await room.handle.workspace.write_file("/a b.txt", "apples")
    with on_record("call:", dies=True):  # the worker dies when the script has run: it does not run again
        turn = await room.say('/show "/a b.txt"')
    assert status_of(turn) == "completed"
    assert await parts(room) == [("tool-bash", "output-available")]
    assert len(room.model.requests) == 1
    assert "apples" in (await room.texts())[-1][1]
    assert turn.model_report is None  # the calls count as no model's
    again = await room.say(Regenerate(message_id=turn.assistant_id))
    assert again.retry_of_id == turn.pk
    assert await parts(room) == [("tool-bash", "output-available")]
    assert len(room.model.requests) == 2


@pytest.mark.parametrize("is_approved", [True, False])
async def test_a_person_is_asked_about_a_script_where_the_rules_say(make_room: MakeRoom, is_approved: bool) -> None:
    desk = Desk(make_room("careful-commander"))
    await desk.room.say("/show /none")
    [call] = await desk.calls()
    assert (await desk.row(call)).status == "asked"
    assert desk.room.model.requests == []
    await desk.reply(call, is_approved=is_approved, reason="Not now", continues=True)
    assert await parts(desk.room) == [("tool-bash", "output-available" if is_approved else "output-denied")]
    assert len(desk.room.model.requests) == 1
    assert ("No such file" if is_approved else "Not now") in (await desk.room.texts())[-1][1]


async def test_a_command_with_calls_is_answered_by_its_own_turn(make_room: MakeRoom) -> None:
    room = make_room("hasty-commander")
    await room.admit("say: first")
    waits = (await room.admit("/show /none", delivery=Delivery.STEER)).turn
    assert waits.delivery == Delivery.QUEUE
    later = await room.say("say: later")  # takes the place of what waits, but for a command's
    assert [status_of(turn) for turn in await turns_of(room)] == ["skipped", "completed", "completed"]
    assert await parts(room) == [("tool-bash", "output-available")]
    assert later.position == 3


async def test_the_model_goes_on_from_what_a_commands_sub_agent_found(make_room: MakeRoom) -> None:
    MODELS["helper"] = helper = ScriptedModel("say: Cranes sleep on one leg.")
    room = make_room("commander")
    turn = await room.say("/ask say: What do they sleep on?")
    assert status_of(turn) == "completed"
    assert await parts(room) == [("tool-fowler", "output-available")]
    [request] = room.model.requests
    last = request["messages"][-1]
    assert (last["role"], SUMMARISE_TEXT in dump(last)) == ("user", True)
    assert "Cranes sleep on one leg." in dump(request["messages"][-2])
    assert [role for role, _ in await room.texts()] == ["user", "assistant"]  # that line is for the model alone
    await room.say(call_line("fowler", "h1", task="/greet Ann") + "say: done")
    assert "/greet Ann" in dump(helper.requests[-1])  # a task that a model gives is no command


async def test_what_stands_behind_an_exclamation_mark_is_run_and_no_model_is_asked(make_room: MakeRoom) -> None:
    room = make_room("commander")
    await room.say("!echo hi > /made.txt && cat /made.txt")
    assert await parts(room) == [("tool-bash", "output-available")]
    assert await room.handle.workspace.read_file("/made.txt") == "hi\n"
    assert room.model.requests == []
    await room.say("say: {results}")
    assert "hi" in json.dumps(room.model.requests[-1])  # the model knows of it later
    await room.say(Program(messages=[{"role": "user", "parts": [{"type": "text", "text": "!rm /made.txt"}]}]))
    assert await room.handle.workspace.read_file("/made.txt") == "hi\n"  # code types nothing
    await room.say("!rm /made.txt", via="mcp")  # nor does a program
    assert await room.handle.workspace.read_file("/made.txt") == "hi\n"
    plain = make_room("plain", "plain")
    await plain.say("!echo hi")
    assert await parts(plain) == []


async def test_a_command_may_choose_the_model_of_its_answer(make_room: MakeRoom) -> None:
    room = make_room("commander")
    turn = await room.say("/other")
    assert turn.options["opening"]["model"] == "scripted/other"
    assert status_of(turn) == "error"  # there is no such provider here: the model was asked for by its name
    assert room.model.requests == []
