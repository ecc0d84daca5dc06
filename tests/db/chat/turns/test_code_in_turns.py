"""Code that a model writes, within a turn: its calls are recorded under the turn's fence, and it parks with it."""

import json
from collections.abc import AsyncIterator

import pytest

from chat.llm.scripted import ScriptedModel
from chat.think import Think, Tool, ToolContext, tool
from fibers.process.runs import registry as runs
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.everyday import MODELS
from tools_app.code_tool.tool import create_execute_tool
from tools_app.sandbox.deno import DenoSandbox

from .conftest import MakeRoom, status_of, text_of

pytestmark = pytest.mark.django_db(transaction=True)

SANDBOXES: dict[str, DenoSandbox] = {}
NOTED: list[str] = []
CODE = "const text = await tools.look({}); const sent = await tools.send({to: 'Ann', text}); sent + '.'"
SCRIPT = f"call tool execute {json.dumps({'code': CODE})} id=one\nsay: It says {{result}}"


@tool
async def look(context: ToolContext) -> str:
    """Look something up."""
    NOTED.append(f"look {context.idempotency_key.partition(':')[2]}")
    return "found"


@tool(needs_approval=True, approval_text="Send it to {to}?")
async def send(to: str, text: str) -> str:
    """Send a letter."""
    NOTED.append(f"send {to}")
    return f"{text} went to {to}"


class CodeWriter(Think):
    """Has nothing but code, which has two tools."""

    chat_recovery = False

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [create_execute_tool([look, send], sandbox=SANDBOXES["current"])]


@pytest.fixture(autouse=True)
async def writers_sandbox() -> AsyncIterator[DenoSandbox]:
    NOTED.clear()
    SANDBOXES["current"] = DenoSandbox(spare=False)
    yield SANDBOXES["current"]
    await SANDBOXES.pop("current").close()


async def test_code_parks_its_turn_until_a_person_has_decided(
    make_room: MakeRoom, writers_sandbox: DenoSandbox
) -> None:
    room = make_room("code-writer")
    turn = await room.say(SCRIPT)
    assert turn.fiber.status == "parked"
    assert [(wait["kind"], wait["label"]) for wait in turn.fiber.waits] == [("approval", "Send it to Ann?")]
    assert not runs.snapshot()  # no worker holds it
    assert writers_sandbox.running == []  # and no process
    (question,) = await room.handle.pending_approvals()
    assert (question.call_id, question.sentence) == ("one:2", "Send it to Ann?")
    assert await room.handle.approve_execution(question.id)
    await run_until_idle(skip_delays=True)
    turn = await room.turn(turn.pk)
    assert status_of(turn) == "completed"
    assert "found went to Ann." in text_of((await room.transcript())[-1])
    assert NOTED == ["look one:1", "send Ann"]
