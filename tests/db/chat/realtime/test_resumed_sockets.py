"""A turn that ended and is resumed by a person: open sockets are offered its stream anew, and get it whole."""

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from chat.instances.notifications import group_of, send_notification
from chat.instances.rows import key_of
from chat.models import AgentInstance, Turn, TurnSeen
from chat.realtime.events import InstanceEvents
from chat.turns.admission.stop import resume_turn
from fibers.models import Fiber
from tests.db.chat.conftest import CHUNKS
from tests.db.chat.sockets import Open, frames_until

pytestmark = pytest.mark.django_db(transaction=True)
OFFER = "cf_agent_stream_resuming"


async def pause(turn: Turn) -> None:
    """End a turn as one is ended whose worker was lost and that waits for a person."""
    now = timezone.now()
    await Turn.objects.filter(pk=turn.pk).aupdate(finished_at=now, error_text="Interrupted.", error_code="paused")
    await Fiber.objects.filter(pk=turn.fiber_id).aupdate(status="interrupted", reason="paused", finished_at=now)
    instance = await AgentInstance.objects.aget(pk=turn.instance_id)
    send_notification(group_of(key_of(instance)), {"type": "turn.settled", "turn_id": turn.pk})


async def begin_again(turn: Turn) -> None:
    await Turn.objects.filter(pk=turn.pk).aupdate(finished_at=None, error_text="", error_code="")
    await Fiber.objects.filter(pk=turn.fiber_id).aupdate(status="running")


async def acknowledge(socket: Any) -> None:
    await socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r1"}))


async def paused_while_read(socket: Any, turn: Turn) -> None:
    """A socket that gets the turn up to its first end."""
    await acknowledge(socket)
    await pause(turn)
    ended = await frames_until(socket, "done")
    assert any(frame.get("error") for frame in ended)


async def gets_all_of_it(socket: Any, turn: Turn) -> None:
    """The offer is taken: all from the beginning, then one end."""
    await acknowledge(socket)
    await begin_again(turn)
    replayed = await frames_until(socket, "cf_agent_use_chat_response")
    while not replayed[-1].get("replayComplete"):
        replayed += await frames_until(socket, "cf_agent_use_chat_response")
    assert [frame["body"] for frame in replayed if "seq" in frame] == CHUNKS
    await Fiber.objects.filter(pk=turn.fiber_id).aupdate(status="completed", finished_at=timezone.now())
    await Turn.objects.filter(pk=turn.pk).aupdate(finished_at=timezone.now())
    ended = await frames_until(socket, "done")
    assert (ended[-1]["id"], ended[-1]["outcome"]) == ("r1", "completed")


async def test_every_open_socket_is_offered_the_stream_and_gets_one_further_end(
    open_socket: Open, alice: User, running: Turn
) -> None:
    reading = await open_socket(alice, "assistant/talk")
    await paused_while_read(reading, running)
    late = await open_socket(alice, "assistant/talk")  # it never had the turn: it was over
    assert await TurnSeen.objects.filter(turn=running).aexists()
    assert await sync_to_async(resume_turn)(running.pk)
    assert not await TurnSeen.objects.filter(turn=running).aexists()  # a second failure would be one to be shown
    for socket in (reading, late):
        assert (await frames_until(socket, OFFER))[-1]["id"] == "r1"
    await acknowledge(late)
    await gets_all_of_it(reading, running)
    assert (await frames_until(late, "done"))[-1]["outcome"] == "completed"


async def test_who_asks_is_offered_it_where_the_notification_was_lost(
    open_socket: Open, alice: User, running: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: object) -> None: ...

    monkeypatch.setattr(InstanceEvents, "turn_resumed", lost)
    socket = await open_socket(alice, "assistant/talk")
    await paused_while_read(socket, running)
    assert await sync_to_async(resume_turn)(running.pk)
    assert await socket.receive_nothing(timeout=0.5)
    await socket.send_to(json.dumps({"type": "cf_agent_stream_resume_request", "probeId": "p"}))
    assert (await frames_until(socket, OFFER))[-1]["probeId"] == "p"
    await gets_all_of_it(socket, running)


async def test_a_turn_that_is_resumed_and_over_again_is_offered_to_no_socket(
    open_socket: Open, alice: User, running: Turn
) -> None:
    socket = await open_socket(alice, "assistant/talk")
    await paused_while_read(socket, running)
    instance = await AgentInstance.objects.aget(pk=running.instance_id)
    send_notification(group_of(key_of(instance)), {"type": "turn.resumed", "turn_id": running.pk})
    assert await socket.receive_nothing(timeout=1)
