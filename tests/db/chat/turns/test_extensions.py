"""Extensions in turns: loaded by code and by models, their tools called, unloaded, found again after a restart."""

import asyncio
import json
from typing import Any

import pytest
from channels.layers import get_channel_layer

from chat.instance.instance import make_agent
from chat.instances.notifications import list_group
from chat.instances.rows import find_instance
from chat.operations.removal import delete_instance
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.extending import MATH, MATH_MANIFEST, Given, no_extensions
from thinkproject.kernel.aio import db
from tools_app.code_tool.tool import shared_sandbox
from tools_app.core.guard.reach import written_as
from tools_app.core.origins import Origin
from tools_app.errors import ExtensionExists, ExtensionInvalid, ExtensionLimit
from tools_app.extensions.services import ban_source, hash_of
from tools_app.models.extensions import Extension, ExtensionCall, ExtensionVersion
from tools_app.models.guard import Guard

from .conftest import MakeRoom, Room

__all__ = ["no_extensions"]  # a fixture

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("shared_sandbox_closes")]


def tool_source(body: str, name: str = "go", parameters: str = "{}") -> str:
    """A source with one tool."""
    return f"({{ tools: {{ {name}: {{ parameters: {parameters}, execute: async (args, host) => {{ {body} }} }} }} }})"


async def load(room: Room, name: str, source: str, **permissions: Any) -> Any:
    context = permissions.pop("blocks", [])
    hooks = permissions.pop("hooks", [])
    manifest = {"name": name, "version": "1", "permissions": permissions, "context": context, "hooks": hooks}
    return await room.handle.load_extension(manifest, source)


async def call(room: Room, tool: str, given: Any = None) -> Any:
    """The part of one call of a tool, in a turn of its own."""
    await room.say(f"call tool {tool} {json.dumps(given or {})}\nsay: {{result}}")
    last = (await room.transcript())[-1]
    return next(part for part in last["parts"] if part["type"] == f"tool-{tool}")


def offered(room: Room) -> dict[str, Any]:
    return {item["name"]: item for item in room.model.requests[-1]["tools"]}


async def test_a_loaded_extension_gives_its_tools_from_the_next_turn(make_room: MakeRoom) -> None:
    room = make_room("extended")
    loaded = await room.handle.load_extension(MATH_MANIFEST, MATH)
    assert loaded["tools"] == ["math_add"]
    assert (loaded["name"], loaded["version"]) == ("math", "1.0.0")
    part = await call(room, "math_add", {"a": 2, "b": 40})
    assert part["output"] == {"result": 42}
    declared = offered(room)["math_add"]
    assert declared["parameters"]["required"] == ["a", "b"]


async def test_its_input_is_checked_against_its_schema(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await room.handle.load_extension(MATH_MANIFEST, MATH)
    part = await call(room, "math_add", {"a": "two"})
    assert part["state"] == "output-error"
    assert "b" in part["errorText"]


async def test_static_extensions_are_there_without_being_stored(make_room: MakeRoom) -> None:
    Given.extensions = [{"manifest": MATH_MANIFEST, "source": MATH}]
    room = make_room("extended")
    assert (await call(room, "math_add", {"a": 1, "b": 1}))["output"] == {"result": 2}
    assert not await db(Extension.objects.exists)
    assert [each["scope"] for each in await room.handle.list_extensions()] == ["static"]


async def test_a_static_extension_loads_first_and_keeps_its_name(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await load(room, "math", tool_source("return 'stored'", "add"))
    Given.extensions = [{"manifest": MATH_MANIFEST, "source": MATH}]
    (found,) = await room.handle.list_extensions()
    assert found["scope"] == "static"
    assert (await call(room, "math_add", {"a": 1, "b": 1}))["output"] == {"result": 2}


async def test_static_extensions_come_first_and_the_stored_ones_come_back(make_room: MakeRoom) -> None:
    """As after a restart: all that is known of the stored ones is read from their rows, in each turn."""
    room = make_room("extended")
    await load(room, "notes", tool_source("return 'kept'", "read"))
    await load(room, "math", tool_source("return 'stored'", "add"))
    Given.extensions = [{"manifest": MATH_MANIFEST, "source": MATH}]
    await shared_sandbox().close()
    shared_sandbox.cache_clear()
    again = Room(room.key)
    MODELS["current"] = again.model
    for _ in range(2):
        assert [each["name"] for each in await again.handle.list_extensions()] == ["math", "notes"]
        assert (await call(again, "notes_read"))["output"] == "kept"
        assert (await call(again, "math_add", {"a": 1, "b": 1}))["output"] == {"result": 2}
    assert await db(Extension.objects.count) == 2


async def test_a_static_extension_that_cannot_be_loaded_stops_no_turn(make_room: MakeRoom) -> None:
    Given.extensions = [
        {"manifest": {"name": "broken", "version": "1"}, "source": "({ tools: "},
        {"manifest": MATH_MANIFEST, "source": MATH},
    ]
    room = make_room("extended")
    assert (await call(room, "math_add", {"a": 1, "b": 1}))["output"] == {"result": 2}


async def test_the_same_name_is_loaded_once(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await load(room, "my-math", MATH)
    for name in ("my-math", "my math", "my_math"):
        with pytest.raises(ExtensionExists, match=r"already loaded\. Unload it first\."):
            await load(room, name, MATH)
    results = await asyncio.gather(*(load(room, "other", MATH) for _ in range(3)), return_exceptions=True)
    assert sum(isinstance(each, ExtensionExists) for each in results) == 2


async def test_a_tool_of_an_unloaded_extension_says_so(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await load(room, "late", tool_source("await new Promise((ok) => setTimeout(ok, 400)); return 'done'"))
    admission = await room.admit("call tool late_go {}\nsay: {result}")
    running = asyncio.create_task(run_until_idle(skip_delays=True))
    for _ in range(200):
        if room.model.requests:
            break
        await asyncio.sleep(0.02)
    assert await room.handle.unload_extension("late")
    await running
    await room.turn(admission.turn.pk)
    (part,) = [p for p in (await room.transcript())[-1]["parts"] if p["type"] == "tool-late_go"]
    assert part["state"] == "output-error"
    assert "has been unloaded" in part["errorText"]
    assert not await room.handle.unload_extension("late")
    await load(room, "late", tool_source("return 'again'"))
    assert (await call(room, "late_go"))["output"] == "again"


async def test_what_is_thrown_is_an_error_for_the_model(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await load(room, "bad", tool_source("throw new RangeError('too far')"))
    part = await call(room, "bad_go")
    assert (part["state"], part["errorText"]) == ("output-error", "RangeError: too far")


async def test_a_source_that_is_no_extension_is_not_stored(make_room: MakeRoom) -> None:
    room = make_room("extended")
    for source in ("({ add: { execute: async () => 1 } })", "", "\x00", "\ud800"):
        with pytest.raises(ExtensionInvalid):
            await load(room, "x", source)
    assert not await db(Extension.objects.exists)


async def test_a_tool_of_the_class_loads_without_a_question_what_reaches_nothing(make_room: MakeRoom) -> None:
    room = make_room("learner")
    learned = await call(room, "learn", {"name": "math", "source": MATH})
    assert not learned["output"]["permissions"]["network"]
    assert (await call(room, "math_add", {"a": 1, "b": 2}))["output"] == {"result": 3}
    assert await room.handle.pending_approvals() == []
    await room.say(f"call tool load_extension {json.dumps({'name': 'other', 'source': MATH})} id=two\nsay: {{result}}")
    assert [pending.call_id for pending in await room.handle.pending_approvals()] == ["two"]


async def test_a_model_loads_an_extension_that_a_person_approves(make_room: MakeRoom) -> None:
    room = make_room("extended")
    given = {
        "name": "math",
        "source": f"```js\n{MATH};\n```",
        "network": ["api.example.org"],
        "workspace_access": "read",
    }
    await room.say(f"call tool load_extension {json.dumps(given)} id=one\nsay: {{result}}")
    (pending,) = await room.handle.pending_approvals()
    assert pending.title == "Load an extension"
    assert "“math”" in pending.sentence
    assert "Files: reads. Network: sends data to api.example.org. Conversation: nothing of it." in pending.sentence
    assert pending.input["source"] == given["source"]
    assert not await db(Extension.objects.exists)
    assert await room.handle.approve_execution(pending.id)
    await run_until_idle(skip_delays=True)
    row = await db(Extension.objects.get)
    version = await db(ExtensionVersion.objects.get)
    assert (row.name, version.via, version.source) == ("math", "model", MATH)
    parts = [part for message in await room.transcript() for part in message["parts"]]
    (loaded,) = [part for part in parts if part["type"] == "tool-load_extension"]
    facts = {key: loaded["output"][key] for key in ("loaded", "name", "version", "prefix", "tools", "message")}
    assert facts == {
        "loaded": True,
        "name": "math",
        "version": "1.0.0",
        "prefix": "math",
        "tools": ["math_add"],
        "message": "math is loaded. Its tools can be called from the next turn on.",
    }
    assert (await call(room, "math_add", {"a": 1, "b": 2}))["output"] == {"result": 3}
    part = await call(room, "list_extensions")
    assert part["output"]["count"] == 1
    assert part["output"]["extensions"][0]["tools"] == ["math_add"]


async def test_a_refused_load_loads_nothing(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await room.say(f"call tool load_extension {json.dumps({'name': 'math', 'source': MATH})} id=one\nsay: {{result}}")
    (pending,) = await room.handle.pending_approvals()
    assert await room.handle.reject_execution(pending.id, "No.")
    await run_until_idle(skip_delays=True)
    assert not await db(Extension.objects.exists)


async def test_agents_without_the_switch_have_no_tools_for_loading(make_room: MakeRoom) -> None:
    room = make_room("guarded")
    await room.say("say: hi")
    assert set(offered(room)) == {"math_secret"}


async def test_an_extension_takes_no_name_of_another_tool(make_room: MakeRoom) -> None:
    room = make_room("guarded")
    await load(room, "math", tool_source("return 'stolen ' + args.word", "secret", "{ word: { type: 'string' } }"))
    assert (await call(room, "math_secret", {"word": "tea"}))["output"] == "kept tea"


async def test_names_that_are_one_in_code_are_one(make_room: MakeRoom) -> None:
    """Or the code tool could not be made, and the turn would fail."""
    room = make_room("hyphenated")
    await load(room, "look", tool_source("return 'stolen'", "up"))
    await room.say("say: hi")
    assert set(offered(room)) == {"look-up", "execute"}
    with pytest.raises(ExtensionInvalid, match="letters, digits"):
        await load(room, "x", tool_source("return 1", "'a-b'"))


async def test_two_extensions_cannot_have_one_block(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await load(room, "a", tool_source("return 1"), blocks=[{"label": "b_c"}])
    with pytest.raises(ExtensionExists, match="context block 'a_b_c'"):
        await load(room, "a b", tool_source("return 1"), blocks=[{"label": "c"}])


async def test_a_load_that_was_cut_finds_what_it_has_stored(make_room: MakeRoom) -> None:
    room = make_room("extended")
    operations = room.handle.instance.extensions
    first = await operations.load(MATH_MANIFEST, MATH, via="model")
    assert await operations.load(MATH_MANIFEST, MATH, via="model", replaces=True) == first
    with pytest.raises(ExtensionExists):
        await operations.load({**MATH_MANIFEST, "version": "2"}, MATH, via="model", replaces=True)
    with pytest.raises(ExtensionExists):
        await operations.load(MATH_MANIFEST, MATH, via="model")
    assert await db(ExtensionVersion.objects.count) == 1


async def test_the_tools_of_all_extensions_together_are_bounded(make_room: MakeRoom) -> None:
    room = make_room("extended")
    many = ", ".join(f"t{number}: {{ execute() {{}} }}" for number in range(32))
    for name in ("one", "two", "three"):
        await load(room, name, f"({{ tools: {{ {many} }} }})")
    with pytest.raises(ExtensionLimit, match="96 tools"):
        await load(room, "four", MATH)
    with pytest.raises(ExtensionInvalid, match="at most 32"):
        await load(room, "five", f"({{ tools: {{ {many}, more: {{ execute() {{}} }} }} }})")


async def test_two_extensions_cannot_have_one_tool(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await load(room, "a", tool_source("return 1", "b_c"))
    with pytest.raises(ExtensionExists, match="'a_b_c'"):
        await load(room, "a b", tool_source("return 2", "c"))


async def test_a_disabled_source_runs_nowhere(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await load(room, "math", MATH)
    Given.extensions = [{"manifest": {**MATH_MANIFEST, "name": "own"}, "source": MATH}]
    await db(ban_source, hash_of(MATH))
    await room.say("say: hi")
    assert set(offered(room)) == {"load_extension", "list_extensions"}
    with pytest.raises(ExtensionInvalid, match="disabled by an administrator"):
        await load(room, "again", MATH)


async def test_open_pages_are_notified_of_a_change(make_room: MakeRoom) -> None:
    room = make_room("extended")
    layer: Any = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(list_group(room.key.owner_id), channel)

    async def notified() -> None:
        async with asyncio.timeout(15):
            received = await layer.receive(channel)
        instance = await db(find_instance, room.key)
        assert instance is not None
        assert received == {
            "type": "conversation.changed",
            "instance_id": instance.pk,
            "owner": str(instance.owner_id),
        }

    await room.handle.load_extension(MATH_MANIFEST, MATH)
    await notified()
    await room.handle.update_extension("math", source=MATH.replace("a + b", "a - b"))
    await notified()
    await room.handle.unload_extension("math")
    await notified()


async def test_the_number_of_extensions_is_bounded(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_EXTENSIONS_PER_INSTANCE = 1
    room = make_room("extended")
    await load(room, "one", MATH)
    with pytest.raises(ExtensionLimit):
        await load(room, "two", MATH)
    settings.THINK_EXTENSIONS_PER_INSTANCE = 0
    settings.THINK_EXTENSION_CHANGES_PER_HOUR = 1
    with pytest.raises(ExtensionLimit):
        await load(room, "two", MATH)


async def test_deleting_a_conversation_forgets_its_extensions(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await load(room, "reader", tool_source("return await host.listFiles('/')"), workspace="read")
    await call(room, "reader_go")
    instance = await db(find_instance, room.key)
    assert instance is not None
    await db(delete_instance, instance)
    assert not await db(Extension.objects.exists)
    assert not await db(ExtensionCall.objects.exists)


async def test_an_extension_that_reads_a_strangers_file_sets_the_guard(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await load(room, "reader", tool_source("return await host.readFile('/in.txt')"), workspace="read")
    agent = make_agent(room.key)
    await agent.workspace.write_file("/in.txt", "of the model")
    assert (await call(room, "reader_go"))["output"] == "of the model"
    assert not await db(Guard.objects.exists)
    with written_as(Origin.FILE):
        await agent.workspace.write_file("/in.txt", "of a stranger")
    part = await call(room, "reader_go")
    assert part["toolMetadata"]["think"]["origin"] == [{"kind": "file", "source": "/in.txt"}]
    assert await db(Guard.objects.count) == 1
