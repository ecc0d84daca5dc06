"""Servers of the network: one that others wrote, killed and restarted under a turn, and addresses that are refused."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chat.testing import worker
from chat.think import McpServerSpec
from tests.db.chat.mcp_servers.agents import DECLARED
from tests.db.chat.mcp_servers.conftest import count, only_server, until
from tests.db.chat.mcp_servers.serving import ODD, running
from tests.db.chat.turns.conftest import Room, status_of
from tests.mcp.guarded import free_port
from tests.mcp.others import of_npm
from thinkproject.kernel.aio import db
from tools_app.core.mcp.catalogue import tool_name
from tools_app.errors import McpServerInvalid
from tools_app.mcp import health
from tools_app.mcp.pool import McpPool
from tools_app.mcp.rows import Place, add_server

pytestmark = pytest.mark.django_db(transaction=True)
MakeRoom = Callable[..., Room]


@pytest.fixture(autouse=True)
def _loopback(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]
    monkeypatch.setattr(health, "RETRY_SECONDS", 0.0)


async def call(room: Room, name: str, **arguments: Any) -> Any:
    server = await only_server()
    turn = await room.say(f"call tool {tool_name(server.pk, name)} {json.dumps(arguments)}\nsay: done")
    assert status_of(turn) == "completed"
    return next(part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part)


async def test_a_server_of_others_over_http(make_connected_room: MakeRoom, connections: McpPool) -> None:
    port = free_port()
    room = make_connected_room("declaring")
    with running(of_npm("everything", "streamableHttp"), port, PORT=str(port)):
        DECLARED.append(McpServerSpec(name="everything", url=f"http://127.0.0.1:{port}/mcp"))
        await room.say("say: hi")
        assert (await only_server()).error == ""
        part = await call(room, "echo", message="over http")
        assert "over http" in json.dumps(part["output"])
        await connections.close()


@pytest.mark.long
async def test_a_server_that_is_killed_under_a_turn_and_restarted(
    make_connected_room: MakeRoom, connections: McpPool, tmp_path: Path
) -> None:
    port = free_port()
    command = [sys.executable, str(ODD), "http", str(port), str(tmp_path)]
    DECLARED.append(McpServerSpec(name="odd", url=f"http://127.0.0.1:{port}/mcp"))
    room = make_connected_room("declaring")
    with running(command, port) as process:
        await room.say("say: hi")
        server = await only_server()
        async with worker():
            admission = await room.admit(f"call tool {tool_name(server.pk, 'slow')} {{}}\nsay: done")
            await until(lambda: count(tmp_path, "slow") == 1)
            process.kill()

            async def has_ended() -> bool:
                return (await room.turn(admission.turn.pk)).finished_at is not None

            await until(has_ended)
    part = next(part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part)
    assert part["state"] == "output-error"
    gone = await call(room, "echo", text="while it is down")
    assert gone["state"] == "output-error"
    with running(command, port):
        back = await call(room, "echo", text="back again")
        assert back["output"] == "back again"
        await connections.close()


async def has_grown() -> bool:
    return any(tool["name"] == "grown" for tool in ((await only_server()).catalogue or {})["tools"])


async def test_a_tool_that_comes_later_is_heard_of_over_http(
    make_connected_room: MakeRoom, connections: McpPool, tmp_path: Path
) -> None:
    port = free_port()
    DECLARED.append(McpServerSpec(name="odd", url=f"http://127.0.0.1:{port}/mcp"))
    room = make_connected_room("declaring")
    with running([sys.executable, str(ODD), "http", str(port), str(tmp_path)], port):
        await room.say("say: hi")
        assert (await call(room, "grow"))["output"] == "grown"
        await until(has_grown)
        await connections.close()


async def test_a_tool_that_came_while_nothing_could_be_heard_is_found_with_the_next_call(
    make_connected_room: MakeRoom, connections: McpPool, tmp_path: Path
) -> None:
    port = free_port()
    command = [sys.executable, str(ODD), "http", str(port), str(tmp_path)]
    DECLARED.append(McpServerSpec(name="odd", url=f"http://127.0.0.1:{port}/mcp"))
    room = make_connected_room("declaring")
    with running(command, port):
        await room.say("say: hi")
        assert (await call(room, "echo", text="one"))["output"] == "one"
    (tmp_path / "has-grown").touch()
    with running(command, port):
        assert (await call(room, "echo", text="two"))["output"] == "two"
        await until(has_grown)
        assert connections.attempts == 1
        read_at = (await only_server()).listed_at
        assert (await call(room, "echo", text="three"))["output"] == "three"
        assert (await only_server()).listed_at == read_at  # once was enough
        await connections.close()


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/mcp",
        "https://[::1]/mcp",
        "https://169.254.169.254/latest/meta-data",
        "https://10.0.0.1/mcp",
        "https://[::ffff:10.0.0.1]/mcp",
        "https://localhost/mcp",
    ],
)
async def test_addresses_that_are_not_public_are_refused_when_connecting(
    make_connected_room: MakeRoom, connections: McpPool, settings: Any, url: str
) -> None:
    settings.THINK_MCP_PRIVATE_NETWORKS = []
    DECLARED.append(McpServerSpec(name="inside", url=url))
    await make_connected_room("declaring").say("say: hi")
    server = await only_server()
    assert server.state == "failed"
    assert "not public" in server.error


async def test_a_redirect_elsewhere_is_not_followed(
    make_connected_room: MakeRoom, connections: McpPool, tmp_path: Path
) -> None:
    from starlette.applications import Starlette
    from starlette.responses import RedirectResponse
    from starlette.routing import Route

    from tests.mcp.guarded import serving

    seen: list[str] = []

    async def away(request: Any) -> RedirectResponse:
        seen.append(request.headers.get("x-secret", ""))
        return RedirectResponse(f"http://127.0.0.1:{other}/elsewhere", status_code=307)

    async def elsewhere(request: Any) -> RedirectResponse:
        seen.append("followed")
        return RedirectResponse("/")

    port, other = free_port(), free_port()
    routes = [Route("/mcp", away, methods=["GET", "POST"])]
    others = [Route("/elsewhere", elsewhere, methods=["GET", "POST"])]
    with serving(Starlette(routes=routes), port), serving(Starlette(routes=others), other):
        spec = McpServerSpec(name="moved", url=f"http://127.0.0.1:{port}/mcp", headers={"X-Secret": "canary"})
        DECLARED.append(spec)
        await make_connected_room("declaring").say("say: hi")
    assert "canary" in seen
    assert "followed" not in seen
    assert (await only_server()).state == "failed"


@pytest.mark.parametrize(
    "url", ["http://mcp.example.com", "https://mcp.example.com\\@127.0.0.1/", "file:///etc/passwd", "https://0x7f.1/"]
)
async def test_urls_that_are_odd_are_refused_when_they_are_added(
    make_connected_room: MakeRoom, settings: Any, url: str
) -> None:
    settings.THINK_MCP_PRIVATE_NETWORKS = []
    room = make_connected_room()
    with pytest.raises(McpServerInvalid):
        await db(add_server, McpServerSpec(name="odd", url=url), Place(owner_id=room.key.owner_id))
