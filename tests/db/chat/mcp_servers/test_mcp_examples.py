"""The code examples of the Think documentation under "MCP tools", translated, against a server of the network."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.contrib.auth.models import User

from chat.llm.scripted import ScriptedModel
from chat.testing import worker
from chat.think import McpServerView, Origin, Relaxed, Think, client_callable
from tests.db.chat.mcp_servers.conftest import tools_offered
from tests.db.chat.mcp_servers.serving import ODD, running
from tests.db.chat.sockets import Open, frames_until
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.conftest import Room
from tests.mcp.guarded import free_port
from thinkproject.kernel.aio import db
from tools_app.core.mcp.catalogue import tool_name
from tools_app.mcp.pool import McpPool

pytestmark = pytest.mark.django_db(transaction=True)


class McpToolsDoc(Think):
    """Waits for its servers, at most ten seconds; its clients add and remove them."""

    workspace_tools = False
    wait_for_mcp_connections: ClassVar[bool | float] = True
    injection_guard = Relaxed(reason="The server is this test's own.", trusts=[Origin.MCP])

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    @client_callable(name="addServer")
    async def add_server(self, name: str, url: str) -> str:
        """Add a server by its address."""
        view: McpServerView = await self.add_mcp_server(name, url)
        return view.id

    @client_callable(name="removeServer")
    async def remove_server(self, server_id: str) -> None:
        """Remove a server that was added."""
        await self.remove_mcp_server(server_id)


class McpTimeoutDoc(McpToolsDoc):
    """Waits for at most five seconds."""

    wait_for_mcp_connections: ClassVar[bool | float] = 5.0


async def called(socket: Any, method: str, *arguments: str) -> Any:
    """The result of a call that a page makes."""
    await socket.send_to(json.dumps({"type": "rpc", "id": method, "method": method, "args": arguments}))
    answer = (await frames_until(socket, "rpc"))[-1]
    assert answer["success"], answer
    return answer.get("result")


@pytest.mark.parametrize("agent", ["mcp-tools-doc", "mcp-timeout-doc"])
async def test_mcp_tools(
    make_connected_room: Callable[..., Room],
    connections: McpPool,
    open_socket: Open,
    tmp_path: Path,
    settings: Any,
    agent: str,
) -> None:
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]
    room, port = make_connected_room(agent), free_port()
    page = await open_socket(await db(User.objects.get), f"{agent}/{room.key.name}")
    server = running([sys.executable, str(ODD), "http", str(port), str(tmp_path)], port)
    async with worker():
        with server:
            server_id = await called(page, "addServer", "odd", f"http://127.0.0.1:{port}/mcp")
            echo = tool_name(server_id, "echo")
            await room.handle.chat(f'call tool {echo} {{"text": "hello"}} id=one\nsay: It says {{result}}.')
            assert echo in [item["name"] for item in room.model.requests[0]["tools"]]  # merged into the turn
            assert (await room.texts())[-1] == ("assistant", "It says hello.")
            await called(page, "removeServer", server_id)
            await room.handle.chat("say: Without it.")
            await connections.close()
    assert tools_offered(room) == []
    assert await room.handle.list_mcp_servers() == []
