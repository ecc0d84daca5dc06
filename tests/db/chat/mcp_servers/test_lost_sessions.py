"""A server that has forgotten our session gets a new one with the next request, and that request again."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chat.think import McpServerSpec
from tests.db.chat.mcp_servers.conftest import only_server, until
from tests.mcp.forgetful import REFUSALS, Forgetful
from tests.mcp.guarded import free_port, serving
from thinkproject.kernel.aio import db
from tools_app.errors import McpUnavailable
from tools_app.mcp.answers import ServerError
from tools_app.mcp.pool import McpPool, Target
from tools_app.mcp.rows import Place, add_server
from tools_app.models.mcp import McpServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _near(settings: Any) -> None:
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture(params=sorted(REFUSALS))
async def forgetful(request: pytest.FixtureRequest, connections: McpPool) -> AsyncIterator[tuple[Forgetful, Target]]:
    server, port = Forgetful(request.param), free_port()
    spec = McpServerSpec(name="forgetful", url=f"http://127.0.0.1:{port}/mcp")

    def add() -> McpServer:
        return add_server(spec, Place(is_site=True))[0]

    with serving(server.app, port):
        yield server, Target(await db(add))
        await connections.close()


async def call(connections: McpPool, target: Target) -> str:
    result: Any = await connections.request(target, lambda client: client.call_tool("count", {}))
    return str(result.content[0].text)


async def test_a_new_session_takes_the_place_of_the_forgotten_one(
    connections: McpPool, forgetful: tuple[Forgetful, Target]
) -> None:
    server, target = forgetful
    assert await call(connections, target) == "call 1"
    server.forget()
    server.tools.append("more")
    assert await call(connections, target) == "call 2"  # once, in the new session
    assert server.made == 2

    async def has_more() -> bool:
        return len(((await only_server()).catalogue or {}).get("tools", [])) == 2

    await until(has_more)  # one that began anew may offer something else
    assert await call(connections, target) == "call 3"
    assert (server.made, server.called) == (2, 3)


async def test_calls_that_run_at_once_share_the_new_session(
    connections: McpPool, forgetful: tuple[Forgetful, Target]
) -> None:
    server, target = forgetful
    await call(connections, target)
    server.forget()
    words = await asyncio.gather(*(call(connections, target) for _ in range(5)))
    assert len(set(words)) == 5
    assert (server.made, server.called) == (2, 6)


async def test_one_that_forgets_at_once_again_fails_the_call_and_no_more(
    connections: McpPool, forgetful: tuple[Forgetful, Target]
) -> None:
    server, target = forgetful
    await call(connections, target)

    async def forgets(client: Any) -> Any:
        server.forget()
        return await client.call_tool("count", {})

    with pytest.raises((ServerError, McpUnavailable)):
        await connections.request(target, forgets, refreshes=False)
    assert server.made == 2
    assert await call(connections, target) == "call 2"


async def test_a_method_that_a_server_does_not_know_costs_no_session(
    connections: McpPool, forgetful: tuple[Forgetful, Target]
) -> None:
    server, target = forgetful
    for _ in range(2):
        with pytest.raises(ServerError):
            await connections.request(target, lambda client: client.list_resources(), refreshes=False)
    assert server.made == 1
