"""Sockets when a turn ends at a bad moment: every client gets one end, everything before it and nothing after it."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis
from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.db import OperationalError
from django.utils import timezone

from chat.instances.notifications import ChatCleared, group_of, send_notification
from chat.instances.rows import key_of
from chat.models import AgentInstance, Turn
from chat.reads import snapshots
from chat.realtime import turn_feed
from chat.streams.logs.database_log import write_segments
from chat.streams.logs.log import get_log
from chat.streams.logs.redis_log import keys_of
from chat.streams.records import Append, Record
from chat.turns.admission.stop import clear_instance
from fibers.models import Fiber
from sessions_app.messages.services import put_assistant
from tests.db.chat.conftest import CHUNKS, make_turn, text_message
from tests.db.chat.sockets import chunks_until, connection, cookie_of, frames_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def running_socket(alice: User, running: Turn) -> AsyncIterator[Any]:
    made = connection("/agents/assistant/talk", cookie=await sync_to_async(cookie_of)(alice))
    connected, _ = await made.connect(timeout=15)
    assert connected
    yield made
    await made.disconnect()


async def test_turn_that_ends_before_its_acknowledgement_is_sent_once(
    has_looked: threading.Event, running_socket: Any, running: Turn
) -> None:
    await frames_until(running_socket, "cf_agent_mcp_servers")
    assert await asyncio.to_thread(has_looked.wait, 10)  # the delivery waits for its next poll
    await sync_to_async(put_assistant)(
        running.session_id, text_message("a1", "assistant"), after=None, turn_id=running.pk
    )
    await Fiber.objects.filter(pk=running.fiber_id).aupdate(status="completed")  # and nothing is published
    await running_socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r1"}))
    found = await frames_until(running_socket, "done")
    # The one that notices first, the poll or the acknowledgement: all chunks or none, but the transcript and one end.
    assert [frame["body"] for frame in found if "seq" in frame] in ([], CHUNKS)
    assert all(frame["replay"] for frame in found if "seq" in frame)
    assert found[-2]["type"] == "cf_agent_chat_messages"
    assert found[-1]["outcome"] == "completed"
    assert await running_socket.receive_nothing(timeout=2.5)


async def test_request_that_is_sent_again_as_its_turn_ends_is_ended_once(
    has_looked: threading.Event, running_socket: Any, running: Turn
) -> None:
    await frames_until(running_socket, "cf_agent_mcp_servers")
    assert await asyncio.to_thread(has_looked.wait, 10)
    await sync_to_async(put_assistant)(
        running.session_id, text_message("a1", "assistant"), after=None, turn_id=running.pk
    )
    await Fiber.objects.filter(pk=running.fiber_id).aupdate(status="completed")
    body = json.dumps({"messages": [text_message("q1", "user")]})
    request = {"type": "cf_agent_use_chat_request", "id": "r1", "init": {"method": "POST", "body": body}}
    await running_socket.send_to(json.dumps(request))
    await running_socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r1"}))
    found = await frames_until(running_socket, "done")
    assert found[-2]["type"] == "cf_agent_chat_messages"
    assert await running_socket.receive_nothing(timeout=2.5)


async def test_answer_that_is_not_stored_is_taken_from_the_client_after_the_end(
    running_socket: Any, running: Turn
) -> None:
    await frames_until(running_socket, "cf_agent_mcp_servers")
    await Fiber.objects.filter(pk=running.fiber_id).aupdate(status="completed")
    await running_socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r1"}))
    await frames_until(running_socket, "done")
    # A client protects the message it was streaming against the transcript before the end; this one comes after it.
    [last] = await frames_until(running_socket, "cf_agent_chat_messages")
    assert last["messages"] == []
    assert await running_socket.receive_nothing(timeout=2.5)


async def test_an_answer_that_failed_and_is_not_stored_is_taken_from_the_client_after_its_replay(
    alice: User, running: Turn
) -> None:
    await Fiber.objects.filter(pk=running.fiber_id).aupdate(status="failed", finished_at=timezone.now())
    await Turn.objects.filter(pk=running.pk).aupdate(error_text="It refuses.", finished_at=timezone.now())
    made = connection("/agents/assistant/talk", cookie=await sync_to_async(cookie_of)(alice))
    await made.connect(timeout=15)
    await frames_until(made, "cf_agent_mcp_servers")
    await made.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r1"}))
    found = await frames_until(made, "done")
    assert [frame["body"] for frame in found if "seq" in frame] == CHUNKS
    assert found[-1]["error"]
    [last] = await frames_until(made, "cf_agent_chat_messages")
    assert last["messages"] == []
    await made.disconnect()


async def test_stream_that_began_a_new_life_is_replayed_from_its_beginning(running_socket: Any, running: Turn) -> None:
    log = get_log()
    first = await log.open(running.id, fence=1, floor=len(CHUNKS))
    await frames_until(running_socket, "cf_agent_mcp_servers")
    await running_socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r1"}))
    await chunks_until(running_socket, CHUNKS[-1])
    texts = ['{"type":"start-step"}', '{"type":"finish-step"}', '{"type":"finish"}']
    await log.append([Append(stream=running.id, fence=1, epoch=first.epoch, first=3, texts=texts[:1])])
    await chunks_until(running_socket, texts[0])
    with redis.Redis.from_url(django_settings.REDIS_URL) as client:
        client.hset(keys_of(running.id)[1], "run", "another server")
    second = await log.open(running.id, fence=2, floor=len(CHUNKS))
    await log.append([Append(stream=running.id, fence=2, epoch=second.epoch, first=4, texts=texts[1:])])
    found = await chunks_until(running_socket, texts[-1])
    assert [(frame["seq"], frame["body"]) for frame in found] == list(enumerate(CHUNKS + texts))
    assert all(frame.get("replay") for frame in found), "a client would add live chunks to what it has"


async def test_nothing_of_a_cleared_turn_follows_the_clear(running_socket: Any, running: Turn) -> None:
    log = get_log()
    opened = await log.open(running.id, fence=1, floor=len(CHUNKS))
    await frames_until(running_socket, "cf_agent_mcp_servers")
    await running_socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r1"}))
    await chunks_until(running_socket, CHUNKS[-1])

    async def go_on() -> None:
        for offset in range(3, 1_000):
            text = '{"type":"start-step"}'
            await log.append([Append(stream=running.id, fence=1, epoch=opened.epoch, first=offset, texts=[text])])

    writing = asyncio.create_task(go_on())
    await chunks_until(running_socket, '{"type":"start-step"}')
    instance = await AgentInstance.objects.aget(pk=running.instance_id)
    await sync_to_async(clear_instance)(key_of(instance))
    await frames_until(running_socket, "cf_agent_chat_clear")
    found = await frames_until(running_socket, "done")
    assert [frame for frame in found if "seq" in frame] == []
    writing.cancel()
    assert await running_socket.receive_nothing(timeout=0.5)


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_turn_that_a_clear_ended_is_ended_by_the_clear(
    running_socket: Any, running: Turn, settings: Any, monkeypatch: pytest.MonkeyPatch, *, is_lost: bool
) -> None:
    """The worker may be quicker than the notice of the clear; a client would show the answer again after its end."""
    settings.THINK_STREAM_IDLE_SECONDS = 0.1
    monkeypatch.setattr(turn_feed, "POLL_SECONDS", 1.0)
    await frames_until(running_socket, "cf_agent_mcp_servers")
    await running_socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r1"}))
    await chunks_until(running_socket, CHUNKS[-1])
    assert json.loads(await running_socket.receive_from(timeout=15))["replayComplete"]
    instance = await AgentInstance.objects.aget(pk=running.instance_id)
    instance.generation += 1
    await instance.asave(update_fields=["generation"])
    await Fiber.objects.filter(pk=running.fiber_id).aupdate(status="cancelled")
    if is_lost:
        assert (await frames_until(running_socket, "done"))[-1]["id"] == "r1"
        return
    assert await running_socket.receive_nothing(timeout=0.5)
    cleared: ChatCleared = {"type": "chat.cleared", "origin": "another client", "generation": instance.generation}
    await sync_to_async(send_notification)(group_of(await sync_to_async(key_of)(instance)), cleared)
    found = await frames_until(running_socket, "done")
    assert [frame["type"] for frame in found] == ["cf_agent_chat_clear", "cf_agent_use_chat_response"]
    assert await running_socket.receive_nothing(timeout=1.5)


async def test_turn_accepted_after_a_clear_outlives_a_late_notification_of_it(
    running_socket: Any, running: Turn, settings: Any
) -> None:
    settings.THINK_STREAM_IDLE_SECONDS = 0.1
    await frames_until(running_socket, "cf_agent_mcp_servers")
    await running_socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r1"}))
    await chunks_until(running_socket, CHUNKS[-1])
    instance = await AgentInstance.objects.aget(pk=running.instance_id)
    instance.generation += 1
    await instance.asave(update_fields=["generation"])
    later = await sync_to_async(make_turn)(
        instance, status="pending", request_id="r2", assistant_id="a2", started_at=None
    )
    group = group_of(await sync_to_async(key_of)(instance))
    await sync_to_async(send_notification)(
        group, {"type": "turn.accepted", "turn_id": later.pk, "origin": "another client"}
    )
    await frames_until(running_socket, "cf_agent_chat_messages")
    cleared: ChatCleared = {"type": "chat.cleared", "origin": "another client", "generation": instance.generation}
    await sync_to_async(send_notification)(group, cleared)
    assert [frame["id"] for frame in await frames_until(running_socket, "done") if frame.get("done")] == ["r1"]
    await Fiber.objects.filter(pk=running.fiber_id).aupdate(status="cancelled")
    await sync_to_async(write_segments)(later.id, [Record(offset, text) for offset, text in enumerate(CHUNKS)])
    await Fiber.objects.filter(pk=later.fiber_id).aupdate(status="running")
    assert [frame["body"] for frame in await chunks_until(running_socket, CHUNKS[-1])] == CHUNKS


@pytest.mark.parametrize("failure", [OperationalError("database is away"), TypeError("nobody foresaw this")])
async def test_delivery_that_fails_closes_the_socket(
    running_socket: Any, failure: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await frames_until(running_socket, "cf_agent_mcp_servers")

    def broken(_turn_id: str) -> bool:
        raise failure

    monkeypatch.setattr(snapshots, "is_final", broken)
    async with asyncio.timeout(15):
        while (event := await running_socket.receive_output(timeout=10))["type"] != "websocket.close":
            pass
    assert event["code"] == 1011
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [failure]
