"""Patterns of a class that grant something speak of its own tools, whatever others call theirs."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db.models.functions import Now

from chat.access import api_tokens
from chat.http.mcp.tools import CALLS
from chat.think import Relaxed, Think, Tool, tool
from tests.db.chat.http.mcp.flows import answer_of, names, post
from tests.db.chat.http.mcp.flows import call as request_of
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.guarded_agents import DONE, MAIL, Guarded, mail
from thinkproject.kernel.aio import db
from tools_app.core.mcp.catalogue import tool_name
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.mcp.rows import Place, add_server
from tools_app.models.mcp import McpServer

from .conftest import MakeRoom, Room
from .working import call, one_after_another

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("shared_sandbox_closes")]

WRITES: dict[str, Any] = {"name": "search", "version": "1", "permissions": {"workspace": "read-write"}}
SOURCE = """({ tools: { go: { parameters: {}, execute: async (args, host) => {
  await host.writeFile("/went.txt", "x"); return "went";
} } } })"""


@tool
async def search_orders(query: str) -> str:
    """Search the orders, and note who did."""
    DONE.append(f"search {query}")
    return "none"


class PatternClerk(Think):
    """Lets its own searches run unasked, and offers them to programs."""

    injection_guard = Relaxed(reason="Its searches reach our own orders alone.", allows=["search_*"])
    mcp_server: ClassVar[bool | Sequence[str]] = ("search_*",)

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [mail, search_orders]


class NamingClerk(PatternClerk):
    """Speaks of extensions as well."""

    patterns: ClassVar[list[str]] = ["search_*", "extensions:search_*"]
    injection_guard = Relaxed(reason="Our own extension may search, too.", allows=patterns)
    mcp_server = patterns


@pytest.fixture(autouse=True)
def _mail() -> None:
    DONE.clear()
    MAIL["offer"] = "A good offer."


async def asked(room: Room) -> list[str]:
    return [str(part["type"]).removeprefix("tool-") for part in await Guarded(room).open()]


@pytest.mark.parametrize(("agent", "wanted"), [("pattern-clerk", ["search_go"]), ("naming-clerk", [])])
async def test_a_tool_of_an_extension_asks_unless_the_class_names_its_source(
    make_room: MakeRoom, agent: str, wanted: list[str]
) -> None:
    room = make_room(agent)
    await room.handle.load_extension(WRITES, SOURCE)
    await room.say(one_after_another(call("mail", name="offer"), call("search_orders", query="a"), call("search_go")))
    assert DONE == ["search a"]
    assert await asked(room) == wanted
    assert await room.handle.workspace.exists("/went.txt") is (not wanted)


@pytest.mark.parametrize(
    ("agent", "offered"),
    [("pattern-clerk", {"search_orders"}), ("naming-clerk", {"search_orders", "search_go"})],
)
async def test_programs_are_offered_the_class_s_own_tools_unless_it_names_a_source(
    make_room: MakeRoom, agent: str, offered: set[str]
) -> None:
    room = make_room(agent, name=CALLS)
    await room.handle.load_extension(WRITES, SOURCE)
    user = await User.objects.aget(username="alice")
    _, token = await sync_to_async(api_tokens.create_token)(user, name="tests")
    assert await names(token, agent) == {"chat", *offered}
    if "search_go" not in offered:
        made = request_of("tools/call", name="search_go", arguments={})
        assert "Unknown tool" in str(answer_of(await post(made, token=token, agent=agent)))


@pytest.mark.parametrize(
    ("patterns", "is_offered"),
    [(("*",), False), (("tool_*",), False), (("*", "mcp:*"), True), (("mcp:tool_*", "!*_find"), False)],
)
async def test_tools_of_a_server_are_offered_by_their_source_alone(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch, patterns: tuple[str, ...], is_offered: bool
) -> None:
    room = make_room("pattern-clerk", name=CALLS)
    monkeypatch.setattr(PatternClerk, "mcp_server", patterns)

    def known_server() -> str:
        spec = McpServerSpec(name="Notes", url="https://mcp.example.com")
        server = add_server(spec, Place(owner_id=room.key.owner_id))[0]
        catalogue = {"tools": [{"name": "find", "inputSchema": {"type": "object"}}]}
        McpServer.objects.filter(pk=server.pk).update(catalogue=catalogue, listed_at=Now(), is_trusted=True)
        return tool_name(server.pk, "find")

    name = await db(known_server)
    user = await User.objects.aget(username="alice")
    _, token = await sync_to_async(api_tokens.create_token)(user, name="tests")
    assert (name in await names(token, "pattern-clerk")) is is_offered
