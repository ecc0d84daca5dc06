"""A client whose line was cut in mid-answer: what it is sent when it comes back, and who receives nothing."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.cache.backends.redis import RedisCache
from django.utils import timezone
from redis.exceptions import ConnectionError as RedisAway

from chat.models import AgentInstance, Turn
from chat.reads.snapshots import Snapshot
from chat.realtime.connection import Connection
from chat.realtime.monitor import connections
from chat.realtime.resume_memory import MAX_LABEL, client_label, client_query
from fibers.models import Fiber
from tests.db.chat.conftest import CHUNKS, say
from tests.db.chat.sockets import connection, cookie_of, frames_until

pytestmark = pytest.mark.django_db(transaction=True)
Frames = list[dict[str, Any]]
Connect = Callable[..., Awaitable[Frames]]


@pytest.fixture
async def visit(alice: User, running: Turn) -> AsyncIterator[Connect]:
    """Connect as alice with a label, acknowledge the turn if asked, leave again; returns the frames that came."""
    cookie = await sync_to_async(cookie_of)(alice)

    async def go(label: str, *, acknowledges: bool = False) -> Frames:
        socket = connection(f"/agents/assistant/talk?_pk={label}", cookie=cookie)
        connected, _ = await socket.connect(timeout=15)
        assert connected
        found = await frames_until(socket, "cf_agent_mcp_servers")
        if acknowledges:
            await socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r1"}))
            while not found[-1].get("replayComplete"):
                found.append(json.loads(await socket.receive_from(timeout=10)))
        await socket.disconnect()
        return found

    yield go
    await sync_to_async(cache.clear)()


def end(turn: Turn, status: str = "completed") -> None:
    """End the turn while no one looks."""
    Fiber.objects.filter(pk=turn.fiber_id).update(status=status)
    Turn.objects.filter(pk=turn.pk).update(finished_at=timezone.now())


def ends(found: Frames) -> list[tuple[str, str, bool]]:
    return [(frame["id"], frame["outcome"], frame["replay"]) for frame in found if frame.get("done")]


@pytest.mark.parametrize(("status", "outcome"), [("completed", "completed"), ("cancelled", "aborted")])
async def test_a_cut_client_first_gets_the_end(visit: Connect, running: Turn, status: str, outcome: str) -> None:
    await visit("mine", acknowledges=True)
    await sync_to_async(end)(running, status)
    found = await visit("mine")
    assert ends(found[:1]) == [("r1", outcome, True)]
    assert ends(found[1:]) == []
    assert found[1]["type"] == "cf_agent_chat_messages"


async def test_others_receive_nothing(visit: Connect, running: Turn) -> None:
    await visit("mine", acknowledges=True)
    await visit("looked away")
    await sync_to_async(end)(running)
    for label in ("another", "looked away", "", "x" * (MAX_LABEL + 1)):
        assert ends(await visit(label)) == []


async def test_the_same_label_of_another_user_is_ignored(
    visit: Connect, running: Turn, bob: User, make_instance: Callable[..., AgentInstance]
) -> None:
    await visit("mine", acknowledges=True)
    await sync_to_async(end)(running)
    await sync_to_async(make_instance)(bob, "talk")
    socket = connection("/agents/assistant/talk?_pk=mine", cookie=await sync_to_async(cookie_of)(bob))
    await socket.connect(timeout=15)
    assert ends(await frames_until(socket, "cf_agent_mcp_servers")) == []
    await socket.disconnect()


async def test_what_still_runs_is_offered_and_not_ended(visit: Connect) -> None:
    await visit("mine", acknowledges=True)
    found = await visit("mine", acknowledges=True)
    assert ends(found) == []
    assert found[0]["type"] == "cf_agent_stream_resuming"


async def test_the_path_comes_before_a_replay_but_not_to_those_who_have_it(visit: Connect) -> None:
    kinds = [frame["type"] for frame in await visit("mine", acknowledges=True)]
    assert kinds.index("cf_agent_chat_messages") < kinds.index("cf_agent_use_chat_response")
    again = [frame["type"] for frame in await visit("mine", acknowledges=True)]
    assert "cf_agent_chat_messages" not in again  # what it has of the answer would vanish for a moment


async def test_a_cache_that_is_away_does_not_break_the_chat(
    visit: Connect, running: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_arguments: object) -> None:
        raise RedisAway("no Redis")

    monkeypatch.setattr(RedisCache, "set", away)
    monkeypatch.setattr(RedisCache, "get", away)
    found = await visit("mine", acknowledges=True)
    assert [frame["body"] for frame in found if "seq" in frame] == CHUNKS
    await sync_to_async(end)(running)
    assert ends(await visit("mine")) == []


@pytest.mark.parametrize("query", [b"", b"_pk", b"_pk=" + b"x" * 65, b"&".join([b"a=b"] * 101) + b"&_pk=y"])
def test_labels_that_are_not_believed(query: bytes) -> None:
    assert client_label({"query_string": query}) == ""


def test_agents_get_what_the_client_wrote_and_neither_its_token_nor_its_label() -> None:
    assert client_query({"query_string": b"mode=view&token=secret&_pk=label&mode=edit"}) == {"mode": "view"}
    assert client_query({"query_string": b"&".join([b"a=b"] * 101)}) == {}


async def test_a_resync_during_a_connect_does_not_send_the_history(
    alice: User, make_instance: Callable[..., AgentInstance], monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = await sync_to_async(make_instance)(alice, "talk")
    await sync_to_async(say)(instance, "Hello?", "Hello.", request_id="r0")
    read = Connection.snapshot

    async def slowly(connection: Connection) -> Snapshot:
        await connections._look()
        return await read(connection)

    monkeypatch.setattr(Connection, "snapshot", slowly)
    socket = connection("/agents/assistant/talk", cookie=await sync_to_async(cookie_of)(alice))
    await socket.connect(timeout=15)
    kinds = [frame["type"] for frame in await frames_until(socket, "cf_agent_mcp_servers")]
    assert kinds == ["cf_agent_chat_messages", "cf_agent_identity", "cf_agent_mcp_servers"]
    assert await socket.receive_nothing(timeout=0.6)
    await socket.disconnect()


async def test_one_that_ends_while_its_client_comes_back_is_ended_once(
    visit: Connect, alice: User, running: Turn, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """The look at the rows finds it running; a moment later, when its end is looked for, it is over."""
    settings.THINK_STREAM_IDLE_SECONDS = 0.1
    await visit("mine", acknowledges=True)
    look = Connection.snapshot

    async def look_and_end(connection: Connection, **named: str) -> Snapshot:
        found = await look(connection, **named)
        await sync_to_async(end)(running)
        return found

    monkeypatch.setattr(Connection, "snapshot", look_and_end)
    socket = connection("/agents/assistant/talk?_pk=mine", cookie=await sync_to_async(cookie_of)(alice))
    await socket.connect(timeout=15)
    found = await frames_until(socket, "cf_agent_mcp_servers")
    await socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r1"}))
    while not await socket.receive_nothing(timeout=2):
        found.append(json.loads(await socket.receive_from()))
    # The acknowledgement comes before the end or after it: then the answer is replayed first, or only its end is.
    first, *after = [frame for frame in found if frame.get("done")]
    assert not first.get("replay")
    assert all(frame.get("replay") for frame in after)  # an acknowledgement of what is over is answered
    sent = found[found.index(first) :]
    assert [frame for frame in sent if "seq" in frame] == []
    await socket.disconnect()
