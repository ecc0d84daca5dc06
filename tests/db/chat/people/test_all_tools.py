"""What all conversations of a person are connected to, in one list, and nothing of another person's."""

from collections.abc import Callable

from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.mcp_servers.changes import place_of
from chat.models import AgentInstance
from tests.db.chat.access_calls import client_of
from tests.db.chat.conftest import stored_extension
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.mcp.rows import Place, add_server

Make = Callable[..., AgentInstance]
SOURCE = "({ tools: { go: { execute: async () => 1 } } })"


def with_server(user: User, name: str, instance: AgentInstance | None = None) -> None:
    place = Place(owner_id=user.pk) if instance is None else place_of(instance)
    add_server(McpServerSpec(name=name, url=f"https://{name}.example.com/mcp?key=secret"), place)


def test_servers_of_all_conversations_are_listed_with_their_place(alice: User, bob: User, make_instance: Make) -> None:
    tea = make_instance(alice, "talk", title="Tea")
    with_server(alice, "weather", tea)
    with_server(alice, "maps")
    with_server(bob, "his")
    with_server(bob, "his-too", make_instance(bob, "his", title="Bob's"))
    reply = client_of(alice).get("/api/v1/account/servers")
    found = [(each["server"]["name"], each["instance_id"], each["title"]) for each in reply.json()]
    assert found == [("maps", "", ""), ("weather", tea.pk, "Tea")]
    assert b"secret" not in reply.content


def test_extensions_of_all_conversations_are_listed_with_their_place(
    alice: User, bob: User, make_instance: Make
) -> None:
    tea = make_instance(alice, "talk", title="Tea")
    stored_extension(alice, "brew", SOURCE, level="instance", scope=tea.pk)
    stored_extension(alice, "count", SOURCE, level="user")
    stored_extension(bob, "his", SOURCE, level="user")
    reply = client_of(alice).get("/api/v1/account/extensions")
    found = [(each["name"], each["scope"], each["title"]) for each in reply.json()]
    assert found == [("brew", "instance", "Tea"), ("count", "user", "")]


def test_the_lists_cost_the_same_for_many(alice: User, make_instance: Make) -> None:
    client = client_of(alice)
    counts: dict[str, list[int]] = {"servers": [], "extensions": []}
    for number in range(3):
        instance = make_instance(alice, f"talk{number}")
        with_server(alice, f"server{number}", instance)
        stored_extension(alice, f"ext{number}", SOURCE, level="instance", scope=instance.pk)
        for name, found in counts.items():
            with CaptureQueriesContext(connection) as queries:
                assert len(client.get(f"/api/v1/account/{name}").json()) == number + 1
            found.append(len(queries))
    assert all(len(set(found)) == 1 for found in counts.values()), counts
