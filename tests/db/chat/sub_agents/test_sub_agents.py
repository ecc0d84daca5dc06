"""Sub-agents: who may open an address below an instance, over sockets, HTTP and the API, and their rows."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.access import api_tokens
from chat.agent.base import InstanceKey
from chat.conversations.list import instance_page
from chat.errors import AgentNotFound, QuotaExceeded
from chat.instance.instance import make_agent
from chat.instance.resolve import resolve
from chat.instances.addresses import MAX_HOPS, parse_address
from chat.instances.notifications import group_of
from chat.instances.rows import ensure_instance, find_instance, key_of
from chat.models import AgentInstance, Turn
from chat.operations.removal import delete_instance
from sessions_app.models import Session
from tests.db.chat.conftest import ApiClient, make_turn, say
from tests.db.chat.notes import (
    CHILD,
    ROOT,
    Connect,
    keys,
    messages_at,
)
from tests.db.chat.sockets import answered, connection, frames_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("notes")]


async def call(socket: Any, method: str) -> Any:
    await socket.send_to(json.dumps({"type": "rpc", "id": "c", "method": method, "args": []}))
    return (await frames_until(socket, "rpc"))[-1]["result"]


# --- who may -------------------------------------------------------------------------------------------------------


async def test_a_child_identifies_itself_and_creates_no_row(connect: Connect) -> None:
    socket = await connect(f"{CHILD}/sub/note-under-test/c%201%2F%C3%A9/extra", is_ready=False)
    found = await frames_until(socket, "cf_agent_mcp_servers")
    [identity] = [frame for frame in found if frame["type"] == "cf_agent_identity"]
    assert (identity["agent"], identity["name"]) == ("note-under-test", "c 1/é")
    expected = [["inbox-under-test", "box"], ["note-under-test", "one"], ["note-under-test", "c 1/é"]]
    assert await call(socket, "whoami") == expected
    assert not await AgentInstance.objects.aexists()


REFUSED = [
    "/sub/other-under-test/x",  # served, and not declared
    "/sub/gone-under-test/x",  # declared, and not served
    "/sub/inbox-under-test/box",
    "/sub/note-under-test/closed",
    "/sub/note-under-test/denied",
    "/sub/note-under-test/%2E%2E",
    "/sub/note-under-test/a%00b",
    "/sub/note-under-test/one/sub/other-under-test/x",
    "/sub/note-under-test/n" * (MAX_HOPS + 1),
]


@pytest.mark.parametrize("below", REFUSED)
async def test_what_is_unknown_or_refused_is_4404_and_404(connect: Connect, alice: User, below: str) -> None:
    await sync_to_async(ensure_instance)(keys(alice)[1])
    socket = await connect(f"{ROOT}{below}", is_ready=False)
    closed = await socket.receive_output(timeout=15)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4404)
    assert await sync_to_async(_status)(alice, f"{ROOT}{below}") == 404


def _status(user: User, path: str) -> int:
    client = Client()
    client.force_login(user)
    return int(client.get(f"{path}/get-messages").status_code)


async def test_a_failing_hook_is_retried_and_sends_nothing(connect: Connect, alice: User) -> None:
    for path in (f"{ROOT}/sub/note-under-test/crash", "/agents/inbox-under-test/broken"):
        socket = await connect(path, is_ready=False)
        closed = await socket.receive_output(timeout=15)
        assert (closed["code"], closed["reason"]) == (
            1011,
            "The agent cannot be reached right now. Try again in a moment.",
        )
        assert await sync_to_async(_status)(alice, path) == 503


async def test_the_gate_reads_the_parents_state(connect: Connect, alice: User) -> None:
    await make_agent(keys(alice)[0]).set_state({"closed": ["one"]})
    with pytest.raises(AgentNotFound):
        await resolve(alice.pk, parse_address(CHILD))
    await make_agent(keys(alice)[0]).set_state({"closed": []})
    assert await resolve(alice.pk, parse_address(CHILD)) == keys(alice)[1]


async def test_many_gates_at_once_delay_no_other(alice: User) -> None:
    """The hooks ask the database while the connections wait for them: more of them than it has threads."""
    async with asyncio.timeout(20):
        found = await asyncio.gather(*(resolve(alice.pk, parse_address(CHILD)) for _ in range(60)))
    assert set(found) == {keys(alice)[1]}


async def test_bob_at_alices_address_is_at_his_own(connect: Connect, alice: User, bob: User) -> None:
    def prepare() -> None:
        say(ensure_instance(keys(alice)[1]), "alices-question", "alices-answer")

    await sync_to_async(prepare)()
    his = await connect(CHILD, bob, is_ready=False)
    await his.send_to(json.dumps({"type": "cf_agent_state", "state": {"notes": 5}}))
    await his.send_to(json.dumps({"type": "cf_agent_chat_clear"}))
    text = "".join(await answered(his))
    assert "cf_agent_identity" in text
    assert "alices" not in text
    row = await sync_to_async(find_instance)(keys(alice)[1])
    assert row is not None
    assert (row.state_version, row.generation) == (0, 0)
    assert await AgentInstance.objects.filter(owner=bob).acount() == 2
    assert await sync_to_async(messages_at)(bob, CHILD) == []
    assert len(await sync_to_async(messages_at)(alice, CHILD)) == 2


async def test_a_token_opens_its_owners(connect: Connect, alice: User) -> None:
    _row, secret = await sync_to_async(api_tokens.create_token)(alice, name="t")
    socket = connection(CHILD, query=f"token={secret}")
    await socket.connect(timeout=15)
    await frames_until(socket, "cf_agent_mcp_servers")
    await socket.disconnect()


def test_the_api_opens_a_child_by_id_for_its_owner_alone(as_alice: ApiClient, as_bob: ApiClient, alice: User) -> None:
    child = ensure_instance(keys(alice)[1])
    turn = say(child, "q1", "a1")
    paths = [f"/instances/{child.pk}", f"/instances/{child.pk}/messages", f"/turns/{turn.pk}"]
    assert [as_alice.get(path).status_code for path in paths] == [200] * 3
    assert [as_bob.get(path).status_code for path in paths] == [404] * 3
    assert as_bob.send("DELETE", paths[0]).status_code == 404
    hello = {"message": {"parts": [{"type": "text", "text": "say: hi"}]}}
    accepted = as_alice.send("POST", f"/instances/{child.pk}/turns", hello)
    assert accepted.status_code in {200, 201, 202}
    assert Turn.objects.filter(instance=child).count() == 2
    assert as_bob.send("POST", f"/instances/{child.pk}/turns", hello).status_code == 404


def test_the_api_lists_children_of_ones_own(as_alice: ApiClient, as_bob: ApiClient, alice: User) -> None:
    root, child = keys(alice)
    deep = child.below("note-under-test", "a b/ü")
    row = ensure_instance(deep)
    assert row.parent is not None
    assert row.parent.parent is not None
    paths = [
        [item["path"] for item in as_alice.get(f"/instances{query}").json()["items"]]
        for query in ("", f"?parent={row.parent.parent.pk}", f"?parent={row.parent.pk}", f"?parent={row.pk}")
    ]
    below = "/sub/note-under-test/"
    start = "inbox-under-test/box"
    assert paths == [[start], [f"{start}{below}one"], [f"{start}{below}one{below}a%20b%2F%C3%BC"], []]
    for path in (paths[1][0], paths[2][0]):
        assert async_to_sync(resolve)(alice.pk, parse_address(f"/agents/{path}")).ancestors[0] == root
    assert as_bob.get(f"/instances?parent={row.parent.pk}").status_code == 404
    assert as_alice.get("/instances?parent=nothing").status_code == 404


# --- rows ----------------------------------------------------------------------------------------------------------


def test_rows_appear_with_those_above_them_and_lists_show_roots(alice: User) -> None:
    root, child = keys(alice)
    grandchild = child.below("note-under-test", "deep")
    row = ensure_instance(grandchild)
    assert ensure_instance(grandchild).pk == row.pk
    assert [key_of(row), key_of(row).instance_id] == [_with_id(grandchild, row.pk), row.pk]
    assert row.parent is not None
    assert row.parent.parent == find_instance(root)
    assert AgentInstance.objects.filter(owner=alice).count() == 3
    assert [item.name for item in instance_page(alice.pk).items] == ["box"]
    assert len({group_of(key) for key in (root, child, grandchild)}) == 3


def _with_id(key: InstanceKey, instance_id: str) -> InstanceKey:
    return InstanceKey(
        owner_id=key.owner_id, agent=key.agent, name=key.name, instance_id=instance_id, parent=key.parent
    )


def test_the_same_name_below_others_is_another(alice: User) -> None:
    root, child = keys(alice)
    other = InstanceKey(owner_id=alice.pk, agent=root.agent, name="other").below(child.agent, child.name)
    top = InstanceKey(owner_id=alice.pk, agent=child.agent, name=child.name)
    rows = [ensure_instance(key) for key in (child, other, top, child.below(child.agent, child.name))]
    assert len({row.pk for row in rows}) == len({group_of(key_of(row)) for row in rows}) == 4
    assert [find_instance(key_of(row)) for row in rows] == rows


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_finding_takes_one_query_whatever_the_depth(
    alice: User, depth: int, django_assert_num_queries: Callable[..., CaptureQueriesContext]
) -> None:
    key = keys(alice)[0]
    for number in range(depth):
        key = key.below("note-under-test", str(number))
    row = ensure_instance(key)
    with django_assert_num_queries(1):
        found = find_instance(key)
        assert found is not None
        assert key_of(found) == key_of(row)


def test_children_count_towards_the_quota(alice: User, settings: Any) -> None:
    settings.THINK_INSTANCES_PER_USER = 2
    ensure_instance(keys(alice)[1])
    with pytest.raises(QuotaExceeded):
        ensure_instance(keys(alice)[1].below("note-under-test", "third"))
    assert AgentInstance.objects.count() == 2


def test_a_refused_child_makes_no_parent(alice: User, settings: Any) -> None:
    settings.THINK_INSTANCES_PER_USER = 1
    with pytest.raises(QuotaExceeded):
        ensure_instance(keys(alice)[1])
    assert not AgentInstance.objects.exists()


def test_deleting_a_parent_deletes_its_children_and_a_child_leaves_its_parent(alice: User) -> None:
    root, child = keys(alice)
    rows = [ensure_instance(child), ensure_instance(child.below("note-under-test", "deep"))]
    turn = make_turn(rows[1], status="running")
    delete_instance(rows[1])
    assert not Turn.objects.filter(pk=turn.pk).exists()
    assert AgentInstance.objects.count() == 2
    rows.append(ensure_instance(child.below("note-under-test", "deep")))
    running = make_turn(rows[2], status="running")
    found = find_instance(root)
    assert found is not None
    delete_instance(found)
    assert not AgentInstance.objects.exists()
    assert not Session.objects.exists()
    running.fiber.refresh_from_db()
    assert running.fiber.cancel_requested_at is not None or running.fiber.status == "cancelled"
