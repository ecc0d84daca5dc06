"""MCP servers over the API: what a page has to know of a sign-in."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.db.chat.conftest import ApiClient
from tools_app.core.mcp.servers import McpState
from tools_app.models.mcp import McpServer, McpSignIn

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def docs_server(alice: User) -> McpServer:
    return McpServer.objects.create(
        id="docs", owner=alice, scope="user", name="Docs", transport="http", url="https://docs.example/mcp"
    )


def shown(client: ApiClient) -> dict[str, Any]:
    found = client.get("/mcp-servers").json()
    assert len(found) == 1
    return dict(found[0])


def test_server_says_whether_its_user_is_signed_in(as_alice: ApiClient, alice: User, docs_server: McpServer) -> None:
    assert shown(as_alice)["signed_in"] is False  # no one has to
    McpServer.objects.update(needs_sign_in=True, state=McpState.READY)
    found = shown(as_alice)
    assert (found["signed_in"], found["state"]) == (False, "authenticating")
    assert found["auth_url"].endswith("/mcp/oauth/start/docs")
    McpSignIn.objects.create(server=docs_server, owner=alice, grant="tokens of a test")
    found = shown(as_alice)
    assert (found["signed_in"], found["auth_url"], found["state"]) == (True, None, "ready")
