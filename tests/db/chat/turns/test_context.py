"""Context blocks through whole turns: the prompt, the tools, what models read, the methods (A4, F.1, U2.33, U2.38).

"Session integration" and "Tool merge order" are headings of the Think documentation; what they show is translated here.
"""

import json
from typing import Any

import pytest

from chat.errors import InputInvalid
from chat.instance.handle import AgentHandle
from chat.instance.instance import make_agent
from chat.think import SessionSetup, StoredSearch, StoredSkills, Think, TurnConfig, TurnContext, client_tool, tool
from sessions_app.context.diffs import session_diff
from sessions_app.errors import BlockExists, BlockNotWritable, SessionError
from sessions_app.models import ContextChange, Message
from tests.db.chat.turns.agents.everyday import MODELS, SEEN
from tests.db.chat.turns.agents.hook_agents import HOOKS, no_hooks, seen
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject

from .conftest import MakeRoom, Room, status_of

__all__ = ["no_hooks"]  # a fixture


def declare(make: Any) -> None:
    """Have the agent `flexible` set its session up like this."""
    HOOKS["configure_session"] = make


def system_of(request: JSONObject) -> str:
    return "".join(m["content"] for m in request["messages"] if m["role"] in {"system", "developer"})


def tools_of(request: JSONObject) -> dict[str, JSONObject]:
    return {each["name"]: each for each in request.get("tools", [])}


def read_by_model(request: JSONObject) -> list[str]:
    """The tool results as the model reads them."""
    return [str(m["content"]) for m in request["messages"] if m["role"] == "tool"]


async def answers(room: Room, *lines: str) -> list[Any]:
    """Have the model call tools; their outputs as they are stored."""
    before = len(await room.transcript())
    turn = await room.say("\n".join(lines))
    assert status_of(turn) == "completed"
    said = (await room.transcript())[before + 1 :]
    return [part["output"] for message in said for part in message["parts"] if "toolCallId" in part]


def calls(name: str, **given: Any) -> str:
    return f"call tool {name} {json.dumps(given)}"


# Session integration


class SessionIntegration(Think):
    """The example: a soul, a memory, a cached prompt."""

    def get_model(self) -> Any:
        return MODELS["current"]

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        return (
            session.with_context("soul", provider="You are a helpful coding assistant.")
            .with_context("memory", description="Important facts learned during conversation.", max_tokens=2000)
            .with_cached_prompt()
        )


async def test_session_integration(make_room: MakeRoom) -> None:
    room = make_room("session-integration")
    said = await answers(room, calls("set_context", label="memory", content="Likes tea.", action="append"))
    assert said == ["Written to memory. Usage: 0% (3/2000 tokens)"]
    first = system_of(room.model.requests[0])
    assert first.splitlines()[1] == "SOUL [readonly]"
    assert "MEMORY (Important facts learned during conversation.) [0% — 0/2000 tokens] [writable]" in first
    await room.say("say: hi")
    assert system_of(room.model.requests[-1]) == first  # kept, for the provider's cache
    block = await room.handle.context.block("memory")
    assert block is not None
    assert block.content == "Likes tea."
    assert await room.handle.context.refresh_system_prompt() != first
    await room.say("say: again")
    assert "Likes tea." in system_of(room.model.requests[-1])
    agent = make_agent(room.key)
    assert isinstance(agent, Think)
    assert len(await agent.instance.sessions.shown()) == 6  # `this.messages`: the shown path


async def test_blocks_take_the_place_of_get_system_prompt(make_room: MakeRoom) -> None:
    room = make_room("flexible")
    await room.say("say: hi")
    declare(lambda session: session.with_context("soul", provider="Be kind."))
    await room.say("say: hi")
    plain, blocks = (system_of(request) for request in room.model.requests)
    assert plain == "You are a helpful assistant."
    assert "Be kind." in blocks
    assert plain not in blocks


async def test_a_block_that_was_added_stands_below_get_system_prompt(make_room: MakeRoom) -> None:
    room = make_room("flexible")
    await room.handle.context.add("notes", description="Scratch")
    await room.handle.context.append("notes", "One.")
    await room.say("say: hi")
    system = system_of(room.model.requests[-1])
    assert system.startswith("You are a helpful assistant.\n\n═")
    assert system.endswith("One.")
    with pytest.raises(BlockExists):
        await room.handle.context.add("notes")


# Tool merge order


@tool
def search_context(query: str) -> str:
    """The developer's own."""
    return f"mine: {query}"


async def test_tool_merge_order(make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    room = make_room("flexible")
    declare(lambda session: session.with_context("memory").with_context("facts", provider=StoredSearch()))
    flexible = type(make_agent(room.key))
    monkeypatch.setattr(flexible, "get_tools", lambda _self: [search_context])
    theirs = {"name": "set_context", "description": "the client's", "parameters": {}}
    await room.admit("say: one", client_tools=[theirs])
    await room.say("say: two")
    offered = seen("before_turn")[-1].tools
    assert "Search a block of your context" in offered["search_context"].description  # session beats get_tools
    assert "write to a block" in offered["set_context"].description  # and a client's never takes its place
    HOOKS["before_turn"] = lambda _context: TurnConfig(tools=[client_tool("set_context", "of this turn")])
    await room.say("say: three")
    assert tools_of(room.model.requests[-1])["set_context"]["parameters"]["properties"] == {}


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda session: session.with_context("soul", provider="Kind."), set()),
        (lambda session: session.with_context("memory"), {"set_context"}),
        (
            lambda session: session.with_context("skills", provider=StoredSkills()),
            {"set_context", "load_context", "unload_context"},
        ),
        (lambda session: session.with_context("facts", provider=StoredSearch()), {"set_context", "search_context"}),
        (lambda session: session.with_searchable_history(), {"search_context"}),
        (lambda session: session.with_session_search(), {"session_search"}),
    ],
)
async def test_which_tools_there_are_follows_from_the_blocks(make_room: MakeRoom, make: Any, names: set[str]) -> None:
    room = make_room("flexible")
    declare(make)
    await room.say("say: hi")
    [context] = seen("before_turn")
    ours = {name for name in context.tools if name.endswith(("_context", "_search"))}
    assert ours == names


# The tools


async def test_the_model_writes_a_context_block(make_room: MakeRoom) -> None:
    room = make_room("flexible")
    declare(
        lambda session: (
            session.with_context("memory", max_tokens=1100).with_context("notes").with_context("soul", provider="Kind.")
        )
    )
    said = await answers(
        room,
        calls("set_context", label="memory", content="x" * 1980),
        calls("set_context", label="notes", content="a"),
        calls("set_context", label="notes", content="b", action="append"),
        calls("set_context", label="soul", content="evil"),
        calls("set_context", label="memory", content="x" * 9000),
        calls("set_context", label="nowhere", content="a"),
    )
    assert said[0] == "Written to memory. Usage: 45% (495/1100 tokens)"
    assert said[1] == "Written to notes. Usage: 2 tokens"
    assert said[3] == "Error: Block 'soul' is read-only."
    assert said[4].startswith("Error: Block 'memory' holds at most 1100 tokens; this would be 2250.")
    assert said[5].startswith("Error: There is no context block 'nowhere'.")
    given = tools_of(room.model.requests[0])["set_context"]["parameters"]["properties"]
    assert given["label"]["enum"] == ["memory", "notes"]
    assert given["action"]["enum"] == ["replace", "append"]
    assert "metadata" not in given
    assert await db(lambda: set(ContextChange.objects.values_list("via"))) == {("model",)}


async def test_set_context_of_an_entry(make_room: MakeRoom) -> None:
    room = make_room("flexible")
    declare(lambda session: session.with_context("facts", provider=StoredSearch()))
    titled = {"title": "How to brew tea", "description": "Tea"}
    said = await answers(
        room,
        calls("set_context", label="facts", content="Pour.", metadata=titled),
        calls("set_context", label="facts", content="Likes tea."),
    )
    assert said[0] == 'Indexed "how-to-brew-tea" in facts.'
    assert said[1].startswith('Indexed "likes-tea-')
    given = tools_of(room.model.requests[0])["set_context"]["parameters"]["properties"]
    assert "metadata" in given


async def test_entries_are_loaded_unloaded_and_found(make_room: MakeRoom) -> None:
    room = make_room("flexible")
    declare(lambda s: s.with_context("skills", provider=StoredSkills()).with_context("facts", provider=StoredSearch()))
    context = room.handle.context
    await context.set_entry("skills", "# Tea\nPour.", key="tea", description="How to brew")
    await context.set_entry("facts", "Bob likes green tea.", key="bob")
    assert await answers(room, calls("load_context", label="skills", key="tea")) == ["# Tea\nPour."]
    assert await answers(room, calls("load_context", label="skills", key="cake")) == ["Not found: cake"]
    assert "- tea: How to brew" in system_of(room.model.requests[-1])
    assert await answers(room, calls("search_context", label="facts", query="teas")) == ["[bob]\nBob likes green tea."]
    assert await answers(room, calls("search_context", label="facts", query="cake")) == ["No results found."]
    assert await answers(room, calls("unload_context", label="skills", key="tea")) == ['Unloaded "tea" from skills.']


async def test_unloading_replaces_what_models_read_and_not_what_is_stored(make_room: MakeRoom) -> None:
    room = make_room("flexible")
    declare(lambda session: session.with_context("skills", provider=StoredSkills()))
    await room.handle.context.set_entry("skills", "# Tea\nPour.", key="tea")
    await answers(room, calls("load_context", label="skills", key="tea"))
    await room.say("say: go on")
    assert read_by_model(room.model.requests[-1]) == ["# Tea\nPour."]
    await answers(room, calls("unload_context", label="skills", key="tea"), "say: done")
    noted = "[skill unloaded: tea]"
    assert read_by_model(room.model.requests[-1])[0] == noted  # at once, in the same turn
    await room.say("say: go on")
    assert read_by_model(room.model.requests[-1])[0] == noted
    stored = await db(lambda: str(list(Message.objects.values_list("content", flat=True))))
    assert "# Tea" in stored
    assert noted not in stored
    await answers(room, calls("load_context", label="skills", key="tea"))
    await room.say("say: go on")
    assert read_by_model(room.model.requests[-1])[-1] == "# Tea\nPour."


async def test_the_model_searches_the_session(make_room: MakeRoom) -> None:
    declare(lambda session: session.with_session_search())
    await make_room("flexible", "first").say("say: Green tea is good.")
    room = make_room("flexible", "second")
    [found] = await answers(room, calls("session_search", query="green tea"))
    assert sorted(found.split("\n\n---\n\n")) == ["[assistant] Green tea is good.", "[user] say: Green tea is good."]
    assert await answers(room, calls("session_search", query="zebra")) == ["No results found."]
    third = make_room("flexible", "third")
    for number in range(6):
        await third.say(f"say: Red tea, cup {number}.")
    [found] = await answers(room, calls("session_search", query="red tea"))
    assert len(found.split("\n\n---\n\n")) == 10  # the best of twelve


# Memory and prompts


async def test_memory_of_a_person_spans_conversations(make_room: MakeRoom) -> None:
    declare(lambda session: session.with_memory())
    await answers(make_room("flexible", "first"), calls("set_context", label="memory", content="Likes tea."))
    second = make_room("flexible", "second")
    await second.say("say: hi")
    assert "Likes tea." in system_of(second.model.requests[-1])


async def test_the_system_prompt_does_not_grow_from_turn_to_turn(make_room: MakeRoom) -> None:
    room = make_room("flexible")
    declare(
        lambda s: s.with_memory().with_context("skills", provider=StoredSkills()).with_context("soul", provider="Kind.")
    )
    await room.handle.context.set_entry("skills", "# Tea", key="tea")
    await room.handle.context.replace("memory", "Likes tea.")
    for _ in range(4):
        await answers(
            room,
            calls("load_context", label="skills", key="tea"),
            calls("set_context", label="memory", content="Likes tea."),
        )
    assert len({system_of(request) for request in room.model.requests}) == 1


async def test_clearing_a_conversation_renders_its_prompt_anew(make_room: MakeRoom) -> None:
    room = make_room("flexible")
    declare(lambda session: session.with_context("memory").with_cached_prompt())
    await answers(room, calls("set_context", label="memory", content="Likes tea."))
    await room.handle.clear()
    await room.say("say: hi")
    assert "Likes tea." in system_of(room.model.requests[-1])


async def test_a_provider_that_fails_ends_the_turn(make_room: MakeRoom) -> None:
    def broken() -> str:
        raise RuntimeError("the shelf is locked")

    room = make_room("flexible")
    declare(lambda session: session.with_context("shelf", provider=broken))
    turn = await room.say("say: hi")
    assert (status_of(turn), turn.error_text) == ("error", "The agent's own code failed.")


# Methods


async def test_verbs_work_in_hooks_and_see_the_session_of_the_turn(make_room: MakeRoom) -> None:
    room = make_room("remembering")
    await room.say("say: hi")
    assert seen("held") == ["hi there"]
    assert len(seen("configured")) == 1  # an attempt asks once, however often the context is used in it
    assert (await AgentHandle(room.key).context.blocks())[0].content == "hi there"


class Remembering(Think):
    """Writes in a hook what it reads in the next."""

    def get_model(self) -> Any:
        return MODELS["current"]

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        SEEN.append(("configured", None))
        return session.with_context("memory")

    async def before_turn(self, context: TurnContext) -> None:
        await self.context.append("memory", "hi")

    async def before_step(self, context: Any) -> None:
        await self.context.replace("memory", "hi there")

    async def on_step_finish(self, record: Any) -> None:
        block = await self.context.block("memory")
        SEEN.append(("held", block.content if block else None))


async def test_the_context_cannot_be_used_where_it_is_declared(make_room: MakeRoom) -> None:
    room = make_room("circular")
    turn = await room.say("say: hi")
    assert status_of(turn) == "error"
    assert "configure_session" in turn.error_text
    with pytest.raises(InputInvalid):
        await room.handle.context.blocks()


class Circular(Think):
    """Reads what it is about to declare."""

    def get_model(self) -> Any:
        return MODELS["current"]

    async def configure_session(self, session: SessionSetup) -> SessionSetup:
        await self.context.blocks()
        return session


async def test_the_errors_of_verbs_are_the_blocks_own(make_room: MakeRoom) -> None:
    room = make_room("flexible")
    declare(lambda session: session.with_context("soul", provider="Kind.").with_context("memory"))
    context = room.handle.context
    with pytest.raises(BlockNotWritable):
        await context.append("soul", "x")
    with pytest.raises(SessionError):
        await context.search("memory", "x")
    assert await context.remove("memory") is True
    assert await context.block("memory") is None
    assert await context.unload("soul", "x") is False
    assert await context.system_prompt() != ""


async def test_what_the_model_wrote_into_user_memory_is_in_the_session_diff(
    make_room: MakeRoom,
) -> None:
    room = make_room("flexible")
    declare(
        lambda session: (
            session.with_memory().with_context("notes").with_context("facts", provider=StoredSearch(of="user"))
        )
    )
    await answers(
        room,
        calls("set_context", label="memory", content="Likes tea."),
        calls("set_context", label="notes", content="a"),
        calls("set_context", label="facts", content="Likes cake.", metadata={"title": "Cake"}),
    )
    session_id = await db(lambda: str(Message.objects.values_list("session_id", flat=True)[0]))
    found = await db(session_diff, session_id)
    assert {(each.label, each.key): (each.of, each.diff.patch.splitlines()[-1]) for each in found.documents} == {
        ("facts", "cake"): ("user", "+Likes cake."),
        ("notes", None): ("session", "+a"),
        ("memory", None): ("user", "+Likes tea."),
    }
