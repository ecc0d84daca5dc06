"""Hooks of extensions: in load order after the agent's own, with snapshots cut to their permissions."""

import json
from typing import Any

import pytest

from chat.instances.rows import find_instance
from chat.operations.removal import delete_instance
from chat.think import TurnConfig, TurnContext
from tests.db.chat.turns.agents.everyday import SEEN
from tests.db.chat.turns.agents.extending import Extended, Given, no_extensions
from thinkproject.kernel.aio import db
from tools_app.models.extensions import ExtensionCall

from .conftest import MakeRoom, Room

__all__ = ["no_extensions"]  # a fixture

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("shared_sandbox_closes")]

NOTES = """async (event, host) => {
  await host.writeFile(`/${(await host.listFiles("/")).length}-NAME-HOOK.json`, JSON.stringify(event));
}"""
HOOKS = ("beforeTurn", "beforeToolCall", "afterToolCall", "onStepFinish", "onChunk")


class Talkative(Extended):
    """Says something about its turns itself."""

    def before_turn(self, context: TurnContext) -> TurnConfig:
        SEEN.append(("before_turn", context.system))
        return TurnConfig(system="The agent's own.")


class SelfCounting(Extended):
    """Decides on its steps itself."""

    def get_max_steps(self) -> int:
        return 1


async def subscribe(room: Room, name: str, hooks: dict[str, str], **permissions: Any) -> None:
    written = ", ".join(f"{hook}: {body}" for hook, body in hooks.items())
    manifest = {"name": name, "version": "1", "permissions": permissions, "hooks": list(hooks)}
    await room.handle.load_extension(manifest, f"({{ hooks: {{ {written} }} }})")


async def noted(room: Room, name: str) -> list[tuple[str, Any]]:
    """What the hooks of an extension noted, in order."""
    found = await room.handle.workspace.read_dir("/")
    entries = sorted((int(entry.name.split("-")[0]), entry) for entry in found if f"-{name}-" in entry.name)
    texts = [(entry.name.split("-")[2].removesuffix(".json"), entry.path) for _, entry in entries]
    return [(hook, json.loads(await room.handle.workspace.read_file(path) or "")) for hook, path in texts]


async def test_hooks_are_told_of_a_turn_as_it_goes(make_room: MakeRoom) -> None:
    room = make_room("extended")
    Given.extensions = [
        {
            "manifest": {"name": "math", "version": "1"},
            "source": "({ tools: { add: { execute: ({ a, b }) => a + b } } })",
        }
    ]
    bodies = {hook: NOTES.replace("NAME", "told").replace("HOOK", hook) for hook in HOOKS}
    await subscribe(room, "told", bodies, workspace="read-write", messages="read", context={"read": "all"})
    turn = await room.say('call tool math_add {"a": 1, "b": 2}\nsay: {result}', body={"mood": "fine"})
    assert turn.finished_at is not None
    found = await noted(room, "told")
    order = [hook for hook, _ in found if hook != "onChunk"]
    assert order == ["beforeTurn", "beforeToolCall", "afterToolCall", "onStepFinish", "onStepFinish"]
    events = {hook: event for hook, event in reversed(found) if hook != "onChunk"}
    before = events["beforeTurn"]
    assert before["system"].startswith("You are a helpful assistant.")
    assert "math_add" in before["toolNames"]
    assert (before["messageCount"], before["continuation"], before["body"]) == (1, False, {"mood": "fine"})
    assert before["modelId"]
    assert (events["beforeToolCall"]["toolName"], events["beforeToolCall"]["input"]) == ("math_add", {"a": 1, "b": 2})
    assert (events["afterToolCall"]["success"], events["afterToolCall"]["output"]) == (True, 3)
    chunks = [event for hook, event in found if hook == "onChunk"]
    assert {"text-delta", "finish"} <= {chunk["type"] for chunk in chunks}
    assert any(chunk["chunk"].get("delta") for chunk in chunks)


async def test_what_was_said_is_for_those_who_may_read_it(make_room: MakeRoom) -> None:
    room = make_room("extended")
    Given.extensions = [
        {
            "manifest": {"name": "other", "version": "1"},
            "source": "({ tools: { echo: { execute: (given) => given } } })",
        }
    ]
    bodies = {hook: NOTES.replace("NAME", "blind").replace("HOOK", hook) for hook in HOOKS}
    await subscribe(room, "blind", bodies, workspace="read-write")
    await room.say('call tool other_echo {"word": "SECRET"}\nsay: SECRET', body={"word": "SECRET"})
    found = await noted(room, "blind")
    assert {hook for hook, _ in found} == set(HOOKS)
    assert "SECRET" not in json.dumps(found)
    assert all(set(event) <= {"type"} for hook, event in found if hook == "onChunk")
    assert all("system" not in event for _, event in found)


async def test_of_its_own_tools_it_sees_the_input_and_the_output(make_room: MakeRoom) -> None:
    room = make_room("extended")
    note = NOTES.replace("NAME", "own").replace("HOOK", "afterToolCall")
    source = f"({{ tools: {{ echo: {{ execute: (given) => given }} }}, hooks: {{ afterToolCall: {note} }} }})"
    manifest = {"name": "own", "version": "1", "hooks": ["afterToolCall"], "permissions": {"workspace": "read-write"}}
    await room.handle.load_extension(manifest, source)
    await room.say('call tool own_echo {"word": "mine"}\nsay: {result}')
    ((_, event),) = await noted(room, "own")
    assert (event["input"], event["output"]) == ({"word": "mine"}, {"word": "mine"})


async def test_the_last_to_load_has_the_last_word_about_a_turn(make_room: MakeRoom) -> None:
    room = make_room("talkative")
    config = "async () => ({ temperature: 0.1, maxOutputTokens: 50, headers: {'X-One': '1', Authorization: 'no'}, "
    config += (
        "providerOptions: { openai: { service_tier: 'flex', model: 'other' } }, model: 'other/model', tools: [] })"
    )
    await subscribe(room, "first", {"beforeTurn": config})
    second = "async () => ({ temperature: 0.2, headers: {'X-Two': '2'}, providerOptions: { openai: { seed: 1 } } })"
    await subscribe(room, "second", {"beforeTurn": second})
    await room.say("say: hi")
    request = room.model.requests[-1]
    assert (request["temperature"], request["model"]) == (0.2, "scripted/model")
    assert {item["name"] for item in request["tools"]} == {"load_extension", "list_extensions"}
    assert [kind for kind, _ in SEEN] == ["before_turn"]


async def test_the_system_prompt_is_for_those_who_may_read_it_and_have_no_network(make_room: MakeRoom) -> None:
    room = make_room("talkative")
    say = "async (event) => ({ system: `${event.system} And NAME.` })"
    await subscribe(room, "blind", {"beforeTurn": say.replace("NAME", "blind")})
    await subscribe(
        room, "far", {"beforeTurn": say.replace("NAME", "far")}, context={"read": "all"}, network=["example.org"]
    )
    await subscribe(room, "near", {"beforeTurn": say.replace("NAME", "near")}, context={"read": "all"})
    await room.say("say: hi")
    assert "The agent's own. And near." in json.dumps(room.model.requests[-1]["messages"])


async def test_a_hook_that_fails_or_hangs_stops_no_turn(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_SANDBOX = {"seconds": 1.0}
    room = make_room("extended")
    await subscribe(room, "throws", {"beforeTurn": "() => { throw new Error('no') }", "onChunk": "() => { x.y }"})
    await subscribe(room, "hangs", {"onStepFinish": "() => { for (;;) ; }"})
    await subscribe(room, "odd", {"beforeTurn": "() => ({ temperature: 'hot', maxSteps: -1 })"})
    turn = await room.say("say: all the same")
    assert turn.fiber.status == "completed"
    assert (await room.texts())[-1] == ("assistant", "all the same")


async def test_steps_can_be_made_fewer(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await subscribe(room, "short", {"beforeTurn": "() => ({ maxSteps: 1 })"})
    await room.say("call tool list_extensions {}\nsay: on.\ncall tool list_extensions {}\nsay: done")
    assert [request.get("tool_choice") for request in room.model.requests] == [None, "none"]


async def test_an_agent_that_counts_its_steps_itself_is_not_given_more(make_room: MakeRoom) -> None:
    room = make_room("self-counting")
    await subscribe(room, "long", {"beforeTurn": "() => ({ maxSteps: 8 })"})
    await room.say("call tool list_extensions {}\nsay: on.\ncall tool list_extensions {}\nsay: done")
    assert [request.get("tool_choice") for request in room.model.requests] == [None, "none"]


async def test_a_hook_changes_nothing_of_what_it_is_told(make_room: MakeRoom) -> None:
    room = make_room("extended")
    change = "(event) => { event.input.word = 'changed'; return { input: event.input, block: true } }"
    Given.extensions = [
        {"manifest": {"name": "e", "version": "1"}, "source": "({ tools: { echo: { execute: (given) => given } } })"}
    ]
    await subscribe(room, "meddler", {"beforeToolCall": change}, messages="read")
    await room.say('call tool e_echo {"word": "kept"}\nsay: {result}')
    assert '"kept"' in (await room.texts())[-1][1]


async def test_calls_of_hooks_are_recorded(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await subscribe(room, "curious", {"beforeTurn": "async (e, host) => { await fetch('https://example.org/') }"})
    await room.say("say: hi")
    row = await db(ExtensionCall.objects.get)
    assert (row.during, row.method, row.is_refused) == ("beforeTurn", "fetch", True)
    instance = await db(find_instance, room.key)
    assert instance is not None
    await db(delete_instance, instance)
