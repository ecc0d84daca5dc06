"""Sub-agents at work: turns, notifications and state over sockets and HTTP, and which instance answers."""

import asyncio
from collections.abc import Callable

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.test.utils import CaptureQueriesContext

from chat.agent import registry
from chat.agent.base import InstanceKey
from chat.errors import AgentNotFound, AgentUnavailable
from chat.instance.handle import AgentHandle
from chat.instance.instance import make_agent
from chat.instance.resolve import resolve
from chat.instances.addresses import MAX_HOPS, parse_address
from chat.instances.rows import ensure_instance, find_instance, key_of
from chat.models import AgentInstance, Turn
from chat.realtime import monitor
from chat.streams.logs.log import close_logs
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Submit
from fibers.testing import run_until_idle, worker
from sessions_app.core.messages.shapes import NewMessage
from tests.db.chat.conftest import say
from tests.db.chat.notes import (
    CHILD,
    HEARD,
    ROOT,
    Connect,
    keys,
    messages_at,
    request_frame,
)
from tests.db.chat.sockets import frames_until
from tests.db.chat.use_chat import Page, asks, chunks_of
from tests.db.chat.use_chat import user as asked
from thinkproject.kernel.aio import db

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("notes")]


# --- turns, notifications, state
# -------------------------------------------------------------------------------------------


async def test_a_turn_of_a_child_runs_in_a_worker_and_is_sent_to_its_own_sockets(connect: Connect, alice: User) -> None:
    mine, late, parent = await connect(CHILD), await connect(CHILD), await connect(ROOT)
    await mine.send_to(request_frame("r1", "say: From below."))
    await frames_until(late, "cf_agent_chat_messages")
    await run_until_idle(skip_delays=True)
    for socket in (mine, late):
        ended = (await frames_until(socket, "done"))[-1]
        assert (ended["id"], ended["outcome"]) == ("r1", "completed")
    assert await parent.receive_nothing(timeout=0.3)
    [(key, status)] = HEARD
    assert (key.parent, key.name, status) == (keys(alice)[0], "one", "completed")
    stored = await sync_to_async(messages_at)(alice, CHILD)
    assert [message["role"] for message in stored] == ["user", "assistant"]
    assert await sync_to_async(messages_at)(alice, ROOT) == []
    beside = await connect(ROOT)
    await beside.send_to(request_frame("r2", "say: From above."))  # nor do frames of the parent reach its children
    await frames_until(parent, "cf_agent_chat_messages")
    await run_until_idle(skip_delays=True)
    assert (await frames_until(parent, "done"))[-1]["id"] == "r2"
    for socket in (mine, late):
        assert await socket.receive_nothing(timeout=0.3)


async def test_a_handle_talks_to_a_child_and_lanes_are_their_own(alice: User) -> None:
    root, child = keys(alice)
    asked = [
        (await db(admit, key, TurnRequest(intake=Submit(message=_said(f"say: {key.name}"))))).turn
        for key in (root, child)
    ]
    assert len({turn.fiber.lane for turn in asked}) == 2
    async with worker():
        await AgentHandle(child).chat("say: handled")
    texts = [part["text"] for m in await AgentHandle(child).messages() for part in m["parts"] if part["type"] == "text"]
    assert texts == ["say: one", "one", "say: handled", "handled"]


def _said(text: str) -> NewMessage:
    return {"role": "user", "parts": [{"type": "text", "text": text}]}


async def test_code_reaches_a_child_by_the_handle_of_its_parent(alice: User) -> None:
    root, child = keys(alice)
    handle = AgentHandle(root).sub_agent("other-under-test", "x")  # not declared: that is for clients
    async with worker():
        await handle.chat("say: undeclared")
    assert [key.ancestors for key, _status in HEARD] == [(root,)]
    assert AgentHandle(root).sub_agent(registry.get_agent_class("note-under-test"), "one").key == child
    for agent, name in [("gone-under-test", "x"), ("note-under-test", ".."), ("note-under-test", "")]:
        with pytest.raises(AgentNotFound):
            AgentHandle(root).sub_agent(agent, name)
    deep = AgentHandle(root)
    for _ in range(MAX_HOPS):
        deep = deep.sub_agent("note-under-test", "n")
    with pytest.raises(AgentNotFound):
        deep.sub_agent("note-under-test", "n")


async def test_use_chat_over_http_below_an_instance(alice: User, bob: User) -> None:
    page = await Page(alice).sign_in()
    path = f"{CHILD}/chat"
    reply = await page.post(_ASKS, path)
    answered, _ = await asyncio.gather(chunks_of(reply), run_until_idle(skip_delays=True))
    assert "".join(chunk.get("delta", "") for chunk in answered) == "Over HTTP."
    turn = await Turn.objects.select_related("instance").aget()
    assert key_of(turn.instance).parent == keys(alice)[0]
    assert (await page.resume(f"{path}/p/stream")).status_code == 204
    assert (await (await Page(bob).sign_in()).resume(f"{path}/p/stream")).status_code == 204
    for refused in (f"{ROOT}/sub/note-under-test/closed/chat", f"{ROOT}/sub/other-under-test/x/chat"):
        assert (await page.post(_ASKS, refused)).status_code == 404
        assert (await page.resume(f"{refused}/p/stream")).status_code == 404
        assert (await page.stop(f"{refused}/p/stream")).status_code == 404
    assert (await page.stop(f"{path}/p/stream")).json() == {"stopped": 0}
    assert await AgentInstance.objects.acount() == 2
    await close_logs()


_ASKS = asks([asked("m1", "say: Over HTTP.")])


async def test_a_state_of_a_child_is_sent_to_its_own_sockets_alone(connect: Connect, alice: User) -> None:
    mine, parent, namesake = await connect(CHILD), await connect(ROOT), await connect("/agents/note-under-test/one")
    await make_agent(keys(alice)[1]).set_state({"notes": 1})
    assert (await frames_until(mine, "cf_agent_state"))[-1]["state"] == {"notes": 1}
    assert await parent.receive_nothing(timeout=0.3)
    assert await namesake.receive_nothing(timeout=0.3)


async def test_lost_notifications_of_children_and_roots_are_noticed(
    connect: Connect, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 0.2)
    root, child = keys(alice)
    deep = child.below("note-under-test", "deep")
    await sync_to_async(ensure_instance)(deep)
    opened = {
        key: await connect(path)
        for key, path in [(root, ROOT), (child, CHILD), (deep, f"{CHILD}/sub/note-under-test/deep")]
    }
    for key, socket in opened.items():
        row = await sync_to_async(find_instance)(key)
        assert row is not None
        await AgentInstance.objects.filter(pk=row.pk).aupdate(state={"quiet": key.name}, state_version=1)
        assert (await frames_until(socket, "cf_agent_state"))[-1]["state"] == {"quiet": key.name}
    for socket in opened.values():
        assert await socket.receive_nothing(timeout=0.5)


def test_looking_at_roots_takes_one_query_and_each_depth_of_children_one_more(
    alice: User, django_assert_num_queries: Callable[..., CaptureQueriesContext]
) -> None:
    root, child = keys(alice)
    ensure_instance(child)
    with django_assert_num_queries(1):
        assert [found[0] for found in monitor._counts([root])] == [root]
    with django_assert_num_queries(2):
        assert {found[0] for found in monitor._counts([root, child])} == {root, child}


# --- identity ------------------------------------------------------------------------------------------------------


async def test_the_class_decides_which_instance_answers(connect: Connect, alice: User, bob: User) -> None:
    for user in (alice, bob):
        socket = await connect("/agents/inbox-under-test/me", user, is_ready=False)
        found = await frames_until(socket, "cf_agent_mcp_servers")
        [identity] = [frame for frame in found if frame["type"] == "cf_agent_identity"]
        assert identity["name"] == f"user-{user.pk}"
        await make_agent(InstanceKey(owner_id=user.pk, agent="inbox-under-test", name=identity["name"])).set_state([1])
        assert (await frames_until(socket, "cf_agent_state"))[-1]["state"] == [1]


def test_get_messages_goes_where_the_socket_goes(alice: User) -> None:
    key = InstanceKey(owner_id=alice.pk, agent="inbox-under-test", name=f"user-{alice.pk}")
    say(ensure_instance(key), "q1", "a1")
    assert [message["id"] for message in messages_at(alice, "/agents/inbox-under-test/me")] == ["q1", "a1"]


def test_a_broken_answer_is_no_name(alice: User) -> None:
    with pytest.raises(AgentUnavailable):
        async_to_sync(resolve)(alice.pk, parse_address("/agents/inbox-under-test/broken"))
