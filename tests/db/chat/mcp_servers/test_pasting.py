"""Pasted configurations of MCP servers: shown first, added when confirmed, once."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.agent.base import InstanceKey
from chat.instances.rows import ensure_instance
from fibers.models import Fiber
from tests.db.chat.access_rows import all_rows
from tests.db.chat.conftest import ApiClient
from tests.db.statements import statements
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.mcp import rows
from tools_app.mcp.rows import Place
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "canary-5d1f"
TEXT = """{
  // as VS Code keeps it
  "inputs": [{"id": "key", "type": "promptString", "description": "Key of the docs", "password": true}],
  "servers": {
    "docs": {
      "type": "http", "url": "https://docs.example.com/mcp",
      "headers": {"Authorization": "Bearer ${input:key}"}
    },
    "open": {"url": "https://${REGION:-eu}.example.com/mcp", "env": {"A": "b"}},
    "off": {"url": "https://off.example.com/mcp", "disabled": true},
    "program": {"command": "npx", "args": ["-y", "server-files"]},
    "old": {"type": "sse", "url": "https://old.example.com/sse"},
    "inside": {"url": "file:///etc/passwd"},
    "in-address": {"url": "https://a.example.com/mcp?key=${KEY}"},
  },
}"""


def paste(client: ApiClient, text: str = TEXT, **more: Any) -> Any:
    return client.send("POST", "/mcp-servers/import", {"text": text, **more})


def states(answer: Any) -> dict[str, str]:
    return {each["name"]: each["state"] for each in answer["servers"]}


def test_a_preview_says_what_will_be_and_adds_nothing(as_alice: ApiClient) -> None:
    answer = paste(as_alice, names=["docs", "open"], values={"input:key": CANARY}).json()
    assert answer["added"] == 0
    assert states(answer) == {
        "docs": "new",
        "open": "new",
        "off": "new",
        "program": "refused",
        "old": "refused",
        "inside": "refused",
        "in-address": "incomplete",
    }
    found = {each["name"]: each for each in answer["servers"]}
    assert found["docs"]["headers"] == ["Authorization"]
    assert found["open"]["ignored"] == ["env"]
    assert not found["off"]["enabled"]
    assert "administrators" in found["program"]["reason"]
    assert "older SSE" in found["old"]["reason"]
    assert "http and https" in found["inside"]["reason"]
    assert found["in-address"]["address"] == "https://a.example.com/mcp"
    assert (found["in-address"]["missing"], found["in-address"]["exposed"]) == (["KEY"], ["KEY"])
    asked = {each["key"]: (each["secret"], each["default"], each["description"]) for each in answer["variables"]}
    assert asked == {
        "input:key": (True, None, "Key of the docs"),
        "REGION": (True, "eu", ""),
        "KEY": (True, None, ""),
    }
    assert CANARY not in json.dumps(answer)
    assert not McpServer.objects.exists()
    assert not Fiber.objects.filter(name="chat.mcp_connect").exists()


def test_confirmed_servers_are_added_once(as_alice: ApiClient, alice: User) -> None:
    values = {"input:key": CANARY}
    answer = paste(as_alice, values=values, confirmed=True).json()
    assert answer["added"] == 3
    assert {name for name, state in states(answer).items() if state == "added"} == {"docs", "open", "off"}
    docs, off, opened = McpServer.objects.order_by("name")
    assert rows.spec_of(docs).headers == {"Authorization": f"Bearer {CANARY}"}
    assert (docs.scope, docs.owner_id, docs.is_trusted) == ("user", alice.pk, False)
    assert opened.url == "https://eu.example.com/mcp"
    assert (docs.is_enabled, off.is_enabled) == (True, False)
    assert Fiber.objects.filter(name="chat.mcp_connect").count() == 2  # the disabled one waits
    assert CANARY not in repr(all_rows())
    assert CANARY not in json.dumps(answer)
    again = paste(as_alice, values=values, confirmed=True).json()
    assert (again["added"], states(again)["docs"], states(again)["off"]) == (0, "exists", "exists")
    assert [each["id"] for each in again["servers"][:1]] == [docs.pk]
    assert states(paste(as_alice).json())["docs"] == "exists"  # also before the secret is entered again
    assert McpServer.objects.count() == 3


def test_only_those_that_were_chosen_are_added_and_none_without_its_values(as_alice: ApiClient) -> None:
    answer = paste(as_alice, names=["docs", "off"], confirmed=True).json()
    assert (answer["added"], states(answer)["docs"], states(answer)["open"]) == (1, "incomplete", "new")
    assert [server.name for server in McpServer.objects.all()] == ["off"]


def test_a_name_that_is_taken_stays_what_it_is(as_alice: ApiClient) -> None:
    paste(as_alice, names=["off"], confirmed=True)
    other = '{"servers": {"off": {"url": "https://other.example.com"}, "b": {"url": "https://b.example.com"}}}'
    answer = paste(as_alice, other, confirmed=True).json()
    assert states(answer) == {"off": "refused", "b": "added"}
    assert "'off' already" in answer["servers"][0]["reason"]
    assert McpServer.objects.get(name="off").url == "https://off.example.com/mcp"


def test_what_is_filled_in_is_checked_too(as_alice: ApiClient) -> None:
    text = '{"servers": {"a": {"url": "${WHERE}/mcp", "headers": {"X-A": "${A}"}}}}'
    assert states(paste(as_alice, text).json()) == {"a": "incomplete"}
    for where in ("http://10.0.0.1", "file:///etc", "https://user:pw@a.example.com"):
        answer = paste(as_alice, text, values={"WHERE": where, "A": "b"}, confirmed=True).json()
        assert (states(answer), answer["added"]) == ({"a": "refused"}, 0)
    done = paste(as_alice, text, values={"WHERE": "https://a.example.com", "A": "${HOME}"}, confirmed=True).json()
    assert done["added"] == 1
    assert rows.spec_of(McpServer.objects.get()).headers == {"X-A": "${HOME}"}


@pytest.mark.parametrize("text", ["{", "[]", '{"servers": {}}', '{"a": {"url": "x"}, "a": {"url": "x"}}'])
def test_no_configuration_is_refused_in_words(as_alice: ApiClient, text: str) -> None:
    answer = paste(as_alice, text, confirmed=True)
    assert answer.status_code == 422
    assert answer.json()["code"] == "mcp_server_invalid"


def test_a_conversation_gets_servers_of_its_own(as_alice: ApiClient, alice: User) -> None:
    room = ensure_instance(InstanceKey(owner_id=alice.pk, agent="assistant", name="room"))
    body = {"text": '{"servers": {"a": {"url": "https://a.example.com"}}}', "confirmed": True}
    assert as_alice.send("POST", f"/instances/{room.pk}/mcp-servers/import", body).json()["added"] == 1
    server = McpServer.objects.get()
    assert (server.scope, server.instance_id) == ("instance", room.pk)
    assert as_alice.send("POST", "/mcp-servers/import", body).json()["added"] == 1  # another place


def test_sites_where_people_add_none_show_no_preview_either(as_alice: ApiClient, settings: Any) -> None:
    settings.THINK_MCP_PEOPLE_ADD = False
    assert paste(as_alice).status_code == 403


def test_limits_hold_and_what_is_beyond_them_says_why(as_alice: ApiClient, settings: Any) -> None:
    settings.THINK_MCP_SERVERS_PER_USER = 3
    settings.THINK_MCP_CONNECTS_PER_MINUTE = 2
    text = json.dumps({"servers": {f"s{n}": {"url": "https://a.example.com"} for n in range(5)}})
    answer = paste(as_alice, text, confirmed=True).json()
    assert list(states(answer).values()) == ["added"] * 3 + ["refused"] * 2
    assert "Remove one first" in answer["servers"][4]["reason"]
    assert Fiber.objects.filter(name="chat.mcp_connect").count() == 2
    McpServer.objects.all().delete()
    refused = paste(as_alice, text, confirmed=True)
    assert (refused.status_code, McpServer.objects.count()) == (429, 0)


def test_a_preview_of_many_servers_is_one_question(as_alice: ApiClient, alice: User) -> None:
    def asked(count: int) -> int:
        text = json.dumps({"servers": {f"s{n}": {"url": "https://a.example.com"} for n in range(count)}})
        with statements() as found:
            paste(as_alice, text)
        return sum('FROM "think_tools_mcp_server"' in sql for sql in found)

    rows.add_server(McpServerSpec(name="s1", url="https://a.example.com"), Place(owner_id=alice.pk))
    assert asked(1) == asked(40) == 1
