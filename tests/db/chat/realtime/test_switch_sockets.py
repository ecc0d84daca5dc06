"""Sockets follow the current history: its list, its turns, and no chunk of another."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.agent.base import InstanceKey
from chat.instance.handle import AgentHandle
from chat.instances.notifications import SessionSwitched
from chat.llm.scripted import ScriptedModel
from chat.realtime import monitor
from chat.realtime.events import InstanceEvents
from chat.testing import worker
from tests.db.chat.socket_requests import submit
from tests.db.chat.sockets import frames_until, opening_sockets
from tests.db.chat.turns.agents.everyday import MODELS, SEEN
from tests.db.chat.turns.agents.gated import gate, reached
from tests.db.chat.turns.notifications import listen, notification_of

pytestmark = pytest.mark.django_db(transaction=True)

Connect = Callable[[], Awaitable[Any]]


@pytest.fixture(autouse=True)
def _yes_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 1_000.0)  # what is not sent by its notification is not sent at all
    SEEN.clear()
    MODELS["current"] = ScriptedModel("say: yes")


@pytest.fixture
def handle(alice: User) -> AgentHandle:
    return AgentHandle(InstanceKey(owner_id=alice.pk, agent="several", name="one"))


@pytest.fixture
async def connect_several(alice: User) -> AsyncIterator[Connect]:
    async with opening_sockets() as open_socket:
        yield lambda: open_socket(alice, "several/one")


async def next_list(socket: Any) -> list[str]:
    return [message["id"] for message in (await frames_until(socket, "cf_agent_chat_messages"))[-1]["messages"]]


async def add_message(handle: AgentHandle) -> None:
    """Add a message and await its notification: a later one would send sockets the list of that moment."""
    listening = await listen(handle.key)
    await handle.add_messages([{"id": "u1", "parts": [{"type": "text", "text": "hi"}]}])
    await notification_of(listening, "transcript.changed")


async def test_switching_broadcasts_the_list(connect_several: Connect, handle: AgentHandle) -> None:
    first = (await handle.create_session("one")).id
    await add_message(handle)
    sockets = [await connect_several(), await connect_several()]
    await handle.create_session("two")
    for socket in sockets:
        assert await next_list(socket) == []
    await handle.switch_session(first)
    for socket in sockets:
        assert await next_list(socket) == ["u1"]
    await handle.delete_session(first)
    for socket in sockets:
        assert await next_list(socket) == []


async def test_no_chunks_of_another_history_and_all_of_them_on_coming_back(
    connect_several: Connect, handle: AgentHandle
) -> None:
    first = (await handle.create_session("one")).id
    socket = await connect_several()
    async with worker(), gate() as opened:
        await submit(socket, "r1", "u1")
        assert await next_list(socket) == ["u1"]
        await reached()
        second = (await handle.create_session("two")).id
        frames = await frames_until(socket, "cf_agent_chat_messages")
        done = next(frame for frame in frames if frame.get("done"))
        assert (done["id"], frames[-1]["messages"]) == ("r1", [])
        opened.set()
        assert await handle.wait_until_stable(10)
        await submit(socket, "r2", "u2")
        frames = await frames_until(socket, "done")
        assert {frame["id"] for frame in frames if frame["type"] == "cf_agent_use_chat_response"} == {"r2"}
    await handle.switch_session(first)
    ids = await next_list(socket)
    while len(ids) != 2 or ids[0] != "u1":  # lists of the former end may be under way
        ids = await next_list(socket)
    await handle.switch_session(second)
    assert (await next_list(socket))[0] == "u2"


async def test_a_running_turn_is_sent_from_its_beginning_on_return(
    connect_several: Connect, handle: AgentHandle
) -> None:
    first = (await handle.create_session("one")).id
    socket = await connect_several()
    async with worker(), gate() as opened:
        await submit(socket, "r1", "u1")
        assert await next_list(socket) == ["u1"]
        await reached()
        await handle.create_session("two")
        assert await next_list(socket) == []
        await handle.switch_session(first)
        assert await next_list(socket) == ["u1"]
        opened.set()
        frames = await frames_until(socket, "done")
    bodies = [frame["body"] for frame in frames if "seq" in frame]
    assert '"type":"start"' in bodies[0]
    assert any("yes" in body for body in bodies)
    assert (frames[-1]["id"], frames[-1]["outcome"]) == ("r1", "completed")


async def test_a_lost_notification_is_noticed(
    connect_several: Connect, handle: AgentHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 0.05)
    first = (await handle.create_session("one")).id
    await add_message(handle)
    await handle.create_session("two")
    socket = await connect_several()

    async def lose(_events: InstanceEvents, _event: SessionSwitched) -> None:
        pass

    monkeypatch.setattr(InstanceEvents, "session_switched", lose)
    await handle.switch_session(first)
    async with asyncio.timeout(10):
        assert await next_list(socket) == ["u1"]
