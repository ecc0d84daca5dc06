"""The examples of the Think documentation on extensions, translated; each under its heading's name.

Then context blocks of extensions, restarts and lost workers.
"""

import asyncio
import json
from typing import Any

import pytest

from chat.llm.scripted import ScriptedModel
from chat.think import SessionSetup, Think
from fibers.execution.runner import run_fiber
from fibers.testing import recover_crashed, run_until_idle
from tests.db.chat.turns.agents.everyday import MODELS, PROMPTS
from tests.db.chat.turns.agents.extending import MATH
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("shared_sandbox_closes")]

NOTES = """({
  tools: {
    keep: {
      description: "Keep a note",
      parameters: { text: { type: "string" } },
      execute: async ({ text }, host) => {
        const before = await host.getContext("scratchpad") ?? "";
        await host.setContext("scratchpad", `${before}${text};`);
        return await host.getContext("notes_scratchpad");
      }
    }
  }
})"""
NOTES_MANIFEST: dict[str, Any] = {
    "name": "notes",
    "version": "1.0.0",
    "permissions": {"network": False},
    "context": [{"label": "scratchpad", "description": "Extension scratch space", "maxTokens": 500}],
}


class Example(Think):
    """What all examples have."""

    workspace_tools = False

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]


class StaticExtensions(Example):
    """Static extensions."""

    def get_extensions(self) -> list[dict[str, Any]]:
        return [
            {
                "manifest": {"name": "math", "version": "1.0.0", "permissions": {"network": False}},
                "source": """({
                  tools: {
                    add: {
                      description: "Add two numbers",
                      parameters: { a: { type: "number" }, b: { type: "number" } },
                      execute: async ({ a, b }) => ({ result: a + b })
                    }
                  }
                })""",
            }
        ]


class LlmDrivenExtensions(Example):
    """LLM-driven extensions."""

    extensions = True


class ExtensionContextBlocks(Example):
    """Extension context blocks."""

    def get_extensions(self) -> list[dict[str, Any]]:
        return [{"manifest": NOTES_MANIFEST, "source": NOTES}]


class Keeping(Example):
    """Keeps its prompt with the session."""

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        return session.with_cached_prompt()

    def get_system_prompt(self) -> str:
        return PROMPTS["current"]


async def outputs(room: Room, script: str) -> list[Any]:
    await room.say(script)
    parts = (await room.transcript())[-1]["parts"]
    return [part.get("output", part.get("errorText")) for part in parts if part["type"].startswith("tool-")]


def system(room: Room) -> str:
    return str(room.model.requests[-1]["messages"][0]["content"])


async def test_static_extensions(make_room: MakeRoom) -> None:
    room = make_room("static-extensions")
    assert await outputs(room, 'call tool math_add {"a": 2, "b": 3}\nsay: {result}') == [{"result": 5}]


async def test_llm_driven_extensions(make_room: MakeRoom) -> None:
    room = make_room("llm-driven-extensions")
    await room.say(f"call tool load_extension {json.dumps({'name': 'math', 'source': MATH})}\nsay: {{result}}")
    (pending,) = await room.handle.pending_approvals()
    await room.handle.approve_execution(pending.id)
    await run_until_idle(skip_delays=True)
    parts = [part for message in await room.transcript() for part in message["parts"]]
    (given,) = [part["output"] for part in parts if part["type"] == "tool-load_extension"]
    assert (given["loaded"], given["name"], given["tools"], given["prefix"]) == (True, "math", ["math_add"], "math")
    assert given["message"] == "math is loaded. Its tools can be called from the next turn on."
    assert await outputs(room, 'call tool math_add {"a": 20, "b": 3}\nsay: {result}') == [{"result": 23}]


async def test_extension_context_blocks(make_room: MakeRoom) -> None:
    room = make_room("extension-context-blocks")
    assert await outputs(room, 'call tool notes_keep {"text": "tea"}\nsay: {result}') == ["tea;"]
    assert await outputs(room, 'call tool notes_keep {"text": "milk"}\nsay: {result}') == ["tea;milk;"]
    await room.say("say: hi")
    assert "NOTES_SCRATCHPAD" in system(room).upper()
    assert "Extension scratch space" in system(room)
    assert "tea;milk;" in str(room.model.requests[-1]["messages"][-1])  # behind the question: the prompt's head stays
    assert system(room).startswith("You are a helpful assistant.")  # the agent's own prompt stays


async def test_unloading_takes_the_blocks_away_and_renews_a_kept_prompt(make_room: MakeRoom) -> None:
    PROMPTS["current"] = "Be kind."
    room = make_room("keeping")
    await room.say("say: hi")
    assert system(room) == "Be kind."
    await room.handle.load_extension(NOTES_MANIFEST, NOTES)
    await room.say('call tool notes_keep {"text": "tea"}\nsay: {result}')
    assert "Extension scratch space" in system(room)
    assert await room.handle.unload_extension("notes")
    await room.say("say: hi")
    assert system(room) == "Be kind."
    assert await room.handle.context.block("notes_scratchpad") is None
    await room.handle.load_extension(NOTES_MANIFEST, NOTES)
    block = await room.handle.context.block("notes_scratchpad")
    assert block is not None
    assert block.content == ""


async def test_the_model_writes_an_extensions_block_too(make_room: MakeRoom) -> None:
    room = make_room("extension-context-blocks")
    await outputs(room, 'call tool notes_keep {"text": "tea"}\nsay: {result}')
    await room.handle.context.replace("notes_scratchpad", "by the agent;")
    assert await outputs(room, 'call tool notes_keep {"text": "x"}\nsay: {result}') == ["by the agent;x;"]


async def test_a_new_version_runs_from_the_next_call(make_room: MakeRoom) -> None:
    room = make_room("llm-driven-extensions")
    await room.handle.load_extension({"name": "math", "version": "1"}, MATH)
    shown = await room.handle.update_extension("math", source=MATH.replace("a + b", "a * b"))
    assert shown["version"] == "1"
    assert await outputs(room, 'call tool math_add {"a": 4, "b": 5}\nsay: {result}') == [{"result": 20}]


SLOW = """({ tools: { work: { execute: async ({}, host) => {
  if (await host.readFile("/begun") === null) {
    await host.writeFile("/begun", "yes");
    await new Promise(() => {});
  }
  return "done";
} } } })"""


@pytest.mark.parametrize("network", [[], ["example.org"]])
async def test_a_lost_worker_runs_it_again_unless_it_may_have_sent_something(
    make_room: MakeRoom, network: list[str]
) -> None:
    room = make_room("llm-driven-extensions")
    manifest = {"name": "slow", "version": "1", "permissions": {"workspace": "read-write", "network": network}}
    await room.handle.load_extension(manifest, SLOW)
    admission = await room.admit("call tool slow_work {}\nsay: {result}")
    await _die_once_begun(room, admission.turn.fiber_id)
    await run_until_idle(skip_delays=True)
    turn = await room.turn(admission.turn.pk)
    assert turn.fiber.status == "completed"
    (part,) = [p for p in (await room.transcript())[-1]["parts"] if p["type"] == "tool-slow_work"]
    if network:
        assert "interrupted" in part["errorText"]
    else:
        assert part["output"] == "done"


async def _die_once_begun(room: Room, fiber_id: str) -> None:
    running = asyncio.create_task(run_fiber(fiber_id))
    for _ in range(500):
        if await room.handle.workspace.exists("/begun"):
            break
        await asyncio.sleep(0.01)
    assert await room.handle.workspace.exists("/begun")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await db(recover_crashed)
