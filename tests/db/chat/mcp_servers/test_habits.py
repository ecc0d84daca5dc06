"""Habits of real servers over HTTP: one that is usable is used, and what cannot be read ends in words, at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from chat.think import McpServerSpec
from tests.db.chat.mcp_servers.conftest import only_server, until
from tests.mcp import habits
from tests.mcp.guarded import free_port, serving
from tests.mcp.habits import Habitual
from thinkproject.kernel.aio import db
from tools_app.core.mcp.servers import McpState
from tools_app.errors import McpUnavailable
from tools_app.mcp.answers import ServerError
from tools_app.mcp.pool import McpPool, Target
from tools_app.mcp.rows import Place, add_server
from tools_app.models.mcp import McpServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _habits_near(settings: Any) -> None:
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]


@asynccontextmanager
async def served(server: Habitual, connections: McpPool) -> AsyncIterator[Target]:
    """A server of the site that is this one."""
    port = free_port()
    spec = McpServerSpec(name="habitual", url=f"http://127.0.0.1:{port}{server.path}")

    def add() -> McpServer:
        return add_server(spec, Place(is_site=True))[0]

    with serving(server.app, port):
        yield Target(await db(add))
        await connections.close()


async def called(connections: McpPool, target: Target) -> str:
    async with asyncio.timeout(30):
        result: Any = await connections.request(target, lambda client: client.call_tool("count", {}), refreshes=False)
    return str(result.content[0].text)


@pytest.mark.parametrize("name", habits.USABLE)
async def test_a_server_with_a_habit_is_listed_and_called(name: str, connections: McpPool) -> None:
    server = Habitual(habits.USABLE[name])
    async with served(server, connections) as target:
        async with asyncio.timeout(30):
            found = await connections.refresh(target)
        assert [tool["name"] for tool in found["tools"]] == ["count"]
        assert await called(connections, target) == "one"
        assert connections.attempts == 1
    answers = {message["id"]: message for message in server.sent if "method" not in message}
    if name == "a ping":
        assert answers["are you there"]["result"] == {}
    if name in {"a question outside of a call", "a request of tomorrow"}:
        assert answers
        assert all("error" in answer for answer in answers.values())


@pytest.mark.parametrize("name", habits.BROKEN)
async def test_a_call_that_is_answered_wrongly_fails_with_words(name: str, connections: McpPool) -> None:
    habit, words = habits.BROKEN[name]
    server = Habitual(habit)
    async with served(server, connections) as target:
        await connections.refresh(target)
        with pytest.raises((ServerError, McpUnavailable)) as caught:
            await called(connections, target)
        assert words in str(caught.value)
        server.habit = lambda _server, _message: None
        assert await called(connections, target) == "one"


@pytest.mark.parametrize(
    "given",
    [
        {"capabilities": {}},
        {"capabilities": ...},
        {"capabilities": None},
        {"serverInfo": ...},
        {"serverInfo": {"name": "x"}},
        {"instructions": 7},
        {"protocolVersion": "2024-11-05"},
        {"protocolVersion": "2025-03-26"},
    ],
    ids=str,
)
async def test_a_server_that_says_little_of_itself_is_used(given: Any, connections: McpPool) -> None:
    async with served(Habitual(lambda _server, _message: None, **given), connections) as target:
        found = await connections.refresh(target)
        assert [tool["name"] for tool in found["tools"]] == ["count"]
        assert await called(connections, target) == "one"


async def test_a_server_of_an_unknown_version_is_refused_with_the_version(connections: McpPool) -> None:
    server = Habitual(lambda _server, _message: None, protocolVersion="2019-01-01")
    async with served(server, connections) as target:
        with pytest.raises(McpUnavailable, match="2019-01-01"):
            await connections.refresh(target)
        assert (await only_server()).state == McpState.FAILED


async def test_a_storm_of_changes_has_the_list_read_a_few_times(connections: McpPool) -> None:
    server = Habitual(habits.for_calls(lambda server, message: _stormy(server, message)))
    async with served(server, connections) as target:
        await connections.refresh(target)
        assert await called(connections, target) == "one"
        await until(lambda: server.listed >= 2)
        await asyncio.sleep(1.2)  # in which a reading for each change would show
        assert server.listed <= 3


def _stormy(server: Habitual, message: dict[str, Any]) -> Any:
    return habits.stream(habits.events(*[habits.CHANGED] * 200, server.plain(message)))
