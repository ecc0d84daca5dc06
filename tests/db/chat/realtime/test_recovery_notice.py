"""A crash that a client does not see: who connects learns that the turn is under recovery."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from chat.instances.notifications import group_of, send_notification
from chat.instances.rows import key_of
from chat.models import StreamSegment, Turn
from chat.streams.logs.log import get_log
from chat.streams.records import Append
from fibers.core.states import RECOVERED
from fibers.models import Fiber
from tests.db.chat.conftest import CHUNKS
from tests.db.chat.sockets import connection, cookie_of, frames_until

pytestmark = pytest.mark.django_db(transaction=True)
KIND = "cf_agent_chat_recovering"


@pytest.fixture
async def unopened_socket(alice: User) -> AsyncIterator[Any]:
    made = connection("/agents/assistant/talk", cookie=await sync_to_async(cookie_of)(alice))
    yield made
    await made.disconnect()


async def renewed(turn: Turn, *, seconds_ago: float) -> None:
    """The worker beat so long ago; a lease is ten seconds."""
    lease = timezone.now() + timedelta(seconds=10 - seconds_ago)
    await Fiber.objects.filter(pk=turn.fiber_id).aupdate(lease_until=lease, attempt=1)


async def opening(socket: Any) -> list[dict[str, Any]]:
    connected, _ = await socket.connect(timeout=15)
    assert connected
    return await frames_until(socket, "cf_agent_mcp_servers")


async def replayed(socket: Any) -> None:
    await opening(socket)
    await socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r1"}))
    while not (await frames_until(socket, "cf_agent_use_chat_response"))[-1].get("replayComplete"):
        pass


async def test_a_turn_whose_worker_is_silent_is_shown_as_recovering(unopened_socket: Any, running: Turn) -> None:
    await renewed(running, seconds_ago=7)
    await replayed(unopened_socket)
    (sent,) = await frames_until(unopened_socket, KIND)
    assert sent == {"type": KIND, "recovering": True, "id": "r1"}


async def test_a_turn_that_waits_for_another_worker_is_shown_as_recovering(unopened_socket: Any, running: Turn) -> None:
    await Fiber.objects.filter(pk=running.fiber_id).aupdate(status="pending", reason=RECOVERED, attempt=1)
    await replayed(unopened_socket)
    assert (await frames_until(unopened_socket, KIND))[-1]["recovering"]


async def test_a_turn_cut_before_its_stream_is_shown_as_recovering_with_the_transcript(
    unopened_socket: Any, running: Turn
) -> None:
    await renewed(running, seconds_ago=7)
    await Turn.objects.filter(pk=running.pk).aupdate(started_at=None)
    await StreamSegment.objects.filter(stream=running.pk).adelete()
    kinds = [frame["type"] for frame in await opening(unopened_socket)]
    assert kinds[:3] == ["cf_agent_stream_pending", "cf_agent_chat_messages", KIND]


async def test_a_turn_whose_worker_beats_is_not(unopened_socket: Any, running: Turn) -> None:
    await renewed(running, seconds_ago=-60)  # however slow this machine is
    await replayed(unopened_socket)
    assert await unopened_socket.receive_nothing(timeout=0.3)


async def test_a_worker_that_was_only_slow_ends_the_alarm_with_its_next_chunk(
    unopened_socket: Any, running: Turn
) -> None:
    opened = await get_log().open(running.pk, fence=1, floor=len(CHUNKS))
    await renewed(running, seconds_ago=7)
    await replayed(unopened_socket)
    await frames_until(unopened_socket, KIND)
    chunk = '{"type":"text-delta","id":"p0","delta":"!"}'
    await get_log().append([Append(stream=running.pk, fence=1, epoch=opened.epoch, first=len(CHUNKS), texts=[chunk])])
    over, live = [json.loads(await unopened_socket.receive_from(timeout=10)) for _ in range(2)]
    assert over == {"type": KIND, "recovering": False, "id": "r1"}
    assert (live["body"], live["seq"]) == (chunk, len(CHUNKS))


async def test_what_the_worker_that_goes_on_announces_is_passed_on(unopened_socket: Any, running: Turn) -> None:
    await renewed(running, seconds_ago=7)
    await replayed(unopened_socket)
    await frames_until(unopened_socket, KIND)
    key = await sync_to_async(lambda: key_of(Turn.objects.select_related("instance").get(pk=running.pk).instance))()
    for is_recovering in (True, False):
        send_notification(group_of(key), {"type": "turn.recovering", "recovering": is_recovering, "request_id": "r1"})
        assert (await frames_until(unopened_socket, KIND)) == [{"type": KIND, "recovering": is_recovering, "id": "r1"}]
