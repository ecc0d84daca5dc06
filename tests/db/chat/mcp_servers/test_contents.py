"""Contents of servers, resources and prompts, are shown to the people who have these servers."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.think import McpServerSpec
from fibers.testing import run_until_idle
from tests.db.chat.conftest import ApiClient
from tests.db.chat.mcp_servers.agents import DECLARED
from tests.db.chat.mcp_servers.conftest import only_server
from tests.db.chat.turns.conftest import Room
from tests.mcp.others import of_npm
from thinkproject.kernel.aio import db
from tools_app.mcp import contents, rows
from tools_app.mcp.pool import McpPool
from tools_app.models.mcp import McpServer

pytestmark = pytest.mark.django_db(transaction=True)
MakeRoom = Callable[..., Room]


async def asked(method: str, path: str, body: Any = None, *, user: str = "alice") -> Any:
    def ask() -> Any:
        client = ApiClient(User.objects.get(username=user))
        return client.get(path) if method == "GET" else client.send(method, path, body)

    return await sync_to_async(ask)()


async def shown(server: McpServer, wanted: Any) -> Any:
    """A content once a worker has read it."""
    begun = await asked("POST", f"/mcp-servers/{server.pk}/contents", wanted)
    assert (begun.status_code, begun.json()["state"]) == (202, "reading")
    path = f"/mcp-servers/{server.pk}/contents/{begun.json()['id']}"
    assert (await asked("GET", path)).json()["state"] == "reading"
    await run_until_idle()
    return (await asked("GET", path)).json()


async def everything(make_room: MakeRoom) -> McpServer:
    DECLARED.append(McpServerSpec(name="everything", command=of_npm("everything")))
    await make_room("declaring").say("say: hi")
    return await only_server()


async def test_resources_and_prompts_are_read_by_a_worker(
    make_connected_room: MakeRoom, connections: McpPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await everything(make_connected_room)
    uri = (server.catalogue or {})["resources"][0]["uri"]
    found = await shown(server, {"resource": uri})
    assert (found["state"], found["is_cut"], found["error"]) == ("read", False, None)
    assert uri in found["text"]
    found = await shown(server, {"prompt": "args-prompt", "arguments": {"city": "Paris"}})
    assert (found["state"], "Paris" in found["text"]) == ("read", True)
    found = await shown(server, {"resource": "demo://resource/dynamic/blob/1"})
    (file,) = found["files"]
    assert file["bytes"] > 0
    monkeypatch.setattr(contents, "MAX_CHARS", 10)
    found = await shown(server, {"resource": uri})
    assert (len(found["text"]), found["is_cut"]) == (10, True)


async def test_what_cannot_be_read_says_why(make_connected_room: MakeRoom, connections: McpPool) -> None:
    server = await everything(make_connected_room)
    found = await shown(server, {"resource": "demo://there-is-none"})
    assert (found["state"], found["text"]) == ("failed", "")
    assert "The MCP server 'everything' says:" in found["error"]
    for wrong in ({}, {"resource": "a", "prompt": "b"}, {"resource": "a", "arguments": {"x": "y"}}, {"resource": ""}):
        assert (await asked("POST", f"/mcp-servers/{server.pk}/contents", wrong)).status_code == 422
    await db(rows.set_server, server, is_enabled=False)
    refused = await asked("POST", f"/mcp-servers/{server.pk}/contents", {"resource": "a"})
    assert refused.json()["code"] == "mcp_server_refused"


async def test_contents_are_their_readers_alone_and_so_many_within_a_minute(
    make_connected_room: MakeRoom, connections: McpPool, settings: Any
) -> None:
    server = await everything(make_connected_room)
    await sync_to_async(User.objects.create_user)("bob", password="bob-password")
    await db(lambda: McpServer.objects.update(scope="site", owner=None, instance_id=""))  # both have it
    path = f"/mcp-servers/{server.pk}/contents"
    begun = (await asked("POST", path, {"resource": "demo://private"})).json()
    assert (await asked("GET", f"{path}/{begun['id']}", user="bob")).status_code == 404
    assert (await asked("GET", f"/mcp-servers/other/contents/{begun['id']}")).status_code == 404
    settings.THINK_MCP_CONNECTS_PER_MINUTE = 2
    assert (await asked("POST", path, {"resource": "demo://private"})).status_code == 202
    assert (await asked("POST", path, {"resource": "demo://private"})).status_code == 429
