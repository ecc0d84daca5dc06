"""MCP servers in the admin: the site's are added and changed there, and no secret is shown again."""

import re
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.test import Client

from fibers.models import Fiber
from thinkproject.kernel.secrets import decrypt
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.mcp.rows import Place, add_server, spec_of
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db
LIST = "/admin/think_tools/mcpserver/"
CANARY = "canary-91b2"


def form(**given: Any) -> dict[str, Any]:
    return {"name": "time", "url": "", "command_line": "", "new_secrets": "", "is_enabled": "on", **given}


def test_a_program_is_added_for_everybody_and_its_variables_are_not_shown(client: Client, root: User) -> None:
    given = form(command_line="mcp-server-time '--local-timezone' 'Europe/Berlin'", new_secrets=f"KEY={CANARY}")
    reply = client.post(f"{LIST}add/", given)
    assert reply.status_code == 302, reply.content.decode()
    server = McpServer.objects.get()
    assert (server.scope, server.transport, server.owner_id) == ("site", "stdio", None)
    assert server.command == ["mcp-server-time", "--local-timezone", "Europe/Berlin"]
    assert spec_of(server).env == {"KEY": CANARY}
    assert CANARY in decrypt(server.secrets)
    assert Fiber.objects.filter(name="chat.mcp_connect").count() == 1
    for page in (LIST, f"{LIST}{quote(server.pk)}/change/", f"{LIST}{quote(server.pk)}/history/"):
        html = client.get(page).content.decode()
        assert CANARY not in html
        assert server.secrets not in html
    assert "KEY" in client.get(f"{LIST}{quote(server.pk)}/change/").content.decode()


def test_a_clients_secret_stays_until_it_or_its_id_is_replaced(client: Client, root: User) -> None:
    url = "https://mcp.example.com/"
    first = form(url=url, new_secrets="X-Key=1", client_id="one", client_secret=CANARY)
    assert client.post(f"{LIST}add/", first).status_code == 302
    server = McpServer.objects.get()
    change = f"{LIST}{quote(server.pk)}/change/"
    for given, expected in (
        ({"client_id": "one"}, CANARY),
        ({"client_id": "one", "forgets_secrets": "on"}, CANARY),
        ({"client_id": "one", "client_secret": "other"}, "other"),
        ({"client_id": "two"}, ""),
    ):
        McpServer.objects.update(client_issuer="https://auth.example.com")
        assert client.post(change, form(url=url, **given)).status_code == 302
        server.refresh_from_db()
        assert spec_of(server).client_secret == expected
        assert bool(server.client_issuer) == (expected == CANARY)
        assert CANARY not in client.get(change).content.decode()
    assert client.post(change, form(url=url, client_secret="alone")).status_code == 200


def test_a_server_whose_id_looks_like_an_escape_of_the_admin_can_be_opened(client: Client, root: User) -> None:
    assert client.post(f"{LIST}add/", form(name="time 22", url="https://mcp.example.com/")).status_code == 302
    server = McpServer.objects.get()
    assert "_22_" in server.pk  # which the admin reads as a quotation mark
    (address,) = set(re.findall(rf'href="({LIST}[^"]+/change/)', client.get(LIST).content.decode()))
    assert address == f"{LIST}{quote(server.pk)}/change/"
    assert client.get(address).status_code == 200


def test_secrets_stay_until_they_are_replaced_or_forgotten(client: Client, root: User) -> None:
    client.post(f"{LIST}add/", form(url="https://mcp.example.com/", new_secrets="Authorization=Bearer one"))
    server = McpServer.objects.get()
    change = f"{LIST}{quote(server.pk)}/change/"
    for given, expected in (
        ({}, {"Authorization": "Bearer one"}),
        ({"new_secrets": "X-Key=two"}, {"X-Key": "two"}),
        ({"forgets_secrets": "on"}, {}),
    ):
        assert client.post(change, form(url="https://mcp.example.com/", **given)).status_code == 302
        server.refresh_from_db()
        assert spec_of(server).headers == expected


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"url": "https://mcp.example.com", "command_line": "both"},
        {"url": "http://mcp.example.com"},
        {"url": "https://user:pass@mcp.example.com"},
        {"command_line": "unbalanced '"},
        {"command_line": "fine", "new_secrets": "no equals sign"},
        {"url": "https://mcp.example.com", "new_secrets": "Host=elsewhere"},
    ],
)
def test_what_cannot_be_a_server_is_refused(client: Client, root: User, given: dict[str, str]) -> None:
    assert client.post(f"{LIST}add/", form(**given)).status_code == 200
    assert not McpServer.objects.exists()


def test_servers_of_people_can_be_disabled_and_removed_but_not_changed(client: Client, root: User) -> None:
    alice = User.objects.create_user("alice")
    server, _ = add_server(McpServerSpec(name="hers", url="https://mcp.example.com"), Place(owner_id=alice.pk))
    assert client.post(f"{LIST}{quote(server.pk)}/change/", form(name="evil", command_line="evil")).status_code == 302
    server.refresh_from_db()
    assert (server.name, server.url, server.command) == ("hers", "https://mcp.example.com", [])
    assert "hers" in client.get(f"{LIST}{quote(server.pk)}/change/").content.decode()
    client.post(LIST, {"action": "disable", "_selected_action": [server.pk]})
    server.refresh_from_db()
    assert (server.is_enabled, server.command) == (False, [])
    client.post(f"{LIST}{quote(server.pk)}/delete/", {"post": "yes"})
    assert not McpServer.objects.exists()


def test_staff_without_the_permission_add_nothing(client: Client) -> None:
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.set(Permission.objects.filter(codename="view_mcpserver"))
    client.force_login(staff)
    assert client.get(LIST).status_code == 200
    assert client.post(f"{LIST}add/", form(command_line="evil")).status_code == 403
    assert client.post(f"{LIST}paste/", {"text": PASTED}).status_code == 403
    assert not McpServer.objects.exists()


PASTED = """{"mcpServers": {
  "files": {"command": "server-files", "args": ["/srv"], "env": {"KEY": "${KEY}", "LEVEL": "${LEVEL:-info}"}},
  "docs": {"url": "https://docs.example.com/mcp"},
  "old": {"type": "sse", "url": "https://old.example.com/sse"}
}}"""


def test_a_pasted_configuration_is_shown_and_added_once_it_is_confirmed(
    client: Client, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "of the machine")
    assert "paste/" in client.get(LIST).content.decode()
    shown = client.post(f"{LIST}paste/", {"text": PASTED, "preview": "1"}).content.decode()
    for words in ("Missing: KEY", "Otherwise: info", "older SSE transport", 'name="value:KEY"', "server-files /srv"):
        assert words in shown
    assert "of the machine" not in shown
    asked = client.post(f"{LIST}paste/", {"text": PASTED, "confirm": "1", "names": ["files", "docs"]})
    assert "Fill in the values" in asked.content.decode()
    assert not McpServer.objects.exists()
    given = {"text": PASTED, "confirm": "1", "names": ["files"], "value:KEY": CANARY, "value:LEVEL": ""}
    reply = client.post(f"{LIST}paste/", given)
    assert reply.status_code == 302, reply.content.decode()
    server = McpServer.objects.get()
    assert (server.name, server.scope, server.command) == ("files", "site", ["server-files", "/srv"])
    assert spec_of(server).env == {"KEY": CANARY, "LEVEL": "info"}
    assert client.post(f"{LIST}paste/", {**given, "names": ["files", "docs"]}).status_code == 302
    assert McpServer.objects.count() == 2
    assert "It is there already." in client.post(f"{LIST}paste/", {"text": PASTED}).content.decode()


def test_a_preview_never_shows_a_secret_again(client: Client, root: User) -> None:
    given = {"text": PASTED, "preview": "1", "value:KEY": CANARY}
    assert CANARY not in client.post(f"{LIST}paste/", given).content.decode()
