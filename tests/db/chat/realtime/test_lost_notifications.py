"""Notifications that are lost, late, doubled or out of order: every turn is sent once, in the order of acceptance."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from chat.instances.notifications import SessionFailed, group_of, notify_message_changed, send_notification
from chat.instances.rows import key_of
from chat.models import AgentInstance, StreamSegment, Turn
from chat.realtime import monitor
from chat.realtime.turn_feed import TurnFeed
from chat.streams.logs.database_log import write_segments
from chat.streams.logs.log import get_log
from chat.streams.reader import close_stream
from chat.streams.records import Record
from fibers.models import Fiber
from sessions_app.core.messages.shapes import Part
from sessions_app.messages.services import Leaf, place_messages, put_assistant, queue_messages, update_message
from tests.db.chat.conftest import make_turn, text_message
from tests.db.chat.sockets import connection, cookie_of, frames_until
from tests.db.chat.streams.support import eventually

pytestmark = pytest.mark.django_db(transaction=True)
REQUESTS = ("r1", "r2", "r3")


@pytest.fixture
def instance(alice: User, make_instance: Callable[..., AgentInstance], settings: Any) -> AgentInstance:
    """An empty conversation; nothing waits for long."""
    settings.THINK_STREAM_IDLE_SECONDS = 0.1
    return make_instance(alice, "talk")


@pytest.fixture
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The monitor of a connection looks often. To be used before the connection is made: it sleeps between looks."""
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 0.3)


@pytest.fixture
async def socket(alice: User, instance: AgentInstance) -> AsyncIterator[Any]:
    made = connection("/agents/assistant/talk", cookie=await sync_to_async(cookie_of)(alice))
    connected, _ = await made.connect(timeout=15)
    assert connected
    await frames_until(made, "cf_agent_mcp_servers")
    yield made
    await made.disconnect()


def accept(instance: AgentInstance, request: str) -> Turn:
    """A turn that a user's request made, waiting; nothing is published."""
    assert instance.session_id is not None
    question = f"question-{request}"
    turn = make_turn(
        instance,
        status="pending",
        request_id=request,
        started_at=None,
        assistant_id=f"answer-{request}",
        input_ids=[question],
        options={"answers": [question]},
    )
    queue_messages(instance.session_id, [text_message(question, "user")], turn_id=turn.pk)
    return turn


def begin(turn: Turn) -> None:
    """Begin a turn and say what it says, as a worker does; nothing is published."""
    chunks = [f'{{"type":"start","messageId":"{turn.assistant_id}"}}', '{"type":"start-step"}', '{"type":"finish"}']
    question = turn.input_ids[0]
    place_messages(turn.session_id, [question], after=Leaf.ACTIVE)
    write_segments(turn.pk, [Record(offset, text) for offset, text in enumerate(chunks)])
    put_assistant(turn.session_id, text_message(turn.assistant_id, "assistant"), after=question, turn_id=turn.pk)
    Turn.objects.filter(pk=turn.pk).update(started_at=timezone.now())
    Fiber.objects.filter(pk=turn.fiber_id).update(status="running")


def answer(turn: Turn) -> None:
    """Run a turn to its end; nothing is published."""
    begin(turn)
    end(turn)


def end(turn: Turn) -> None:
    """End a turn; nothing is published."""
    now = timezone.now()
    Turn.objects.filter(pk=turn.pk).update(finished_at=now)
    Fiber.objects.filter(pk=turn.fiber_id).update(status="completed", finished_at=now)


def ring_for(instance: AgentInstance, turn: Turn) -> None:
    send_notification(
        group_of(key_of(instance)), {"type": "turn.accepted", "turn_id": turn.pk, "origin": "another client"}
    )


async def sent(socket: Any, *, dones: int) -> list[tuple[str, str]]:
    """What came of turns, in order: each request with its offset, or `done`."""
    found: list[tuple[str, str]] = []
    while sum(what == "done" for _, what in found) < dones:
        found.append(await told_one(socket))
    return found


async def told_until_now(instance: AgentInstance, socket: Any) -> list[tuple[str, str]]:
    """What came of turns until the notifications that were sent are handled: one after another they are."""
    failed: SessionFailed = {"type": "session.failed", "session_id": str(instance.session_id), "error": "the marker"}
    send_notification(group_of(key_of(instance)), failed)
    frames = await frames_until(socket, "cf_agent_session_error")
    return [told for frame in frames if (told := of_a_turn(frame)) is not None]


def of_a_turn(frame: dict[str, Any]) -> tuple[str, str] | None:
    if frame["type"] == "cf_agent_use_chat_response" and (frame["done"] or "seq" in frame):
        return frame["id"], "done" if frame["done"] else str(frame["seq"])
    return None


def newest_feed() -> TurnFeed:
    """The turns of the connection that came last."""
    return list(monitor.connections._following.values())[-1].feed


async def told_one(socket: Any) -> tuple[str, str]:
    """The next of these."""
    async with asyncio.timeout(20):
        while True:
            told = of_a_turn(json.loads(await socket.receive_from(timeout=15)))
            if told is not None:
                return told


IN_ORDER = [(request, what) for request in REQUESTS for what in ("0", "1", "2", "done")]


@pytest.mark.usefixtures("looks_often")
async def test_turns_whose_notifications_are_lost_are_sent_once_and_in_order(
    instance: AgentInstance, socket: Any
) -> None:
    turns = [await sync_to_async(accept)(instance, request) for request in REQUESTS]
    await eventually(lambda: newest_feed().seen.up_to == 3)
    found = []
    for turn in turns:
        await sync_to_async(answer)(turn)
        found += await sent(socket, dones=1)
    assert found == IN_ORDER
    assert await socket.receive_nothing(timeout=1)


async def test_the_first_turn_of_all_is_sent_although_its_notification_comes_last(
    alice: User, make_instance: Callable[..., AgentInstance], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There was no conversation yet when the connection came; the look at the rows notices the turn first."""
    settings.THINK_STREAM_IDLE_SECONDS = 0.1
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 0.2)
    made = connection("/agents/assistant/new", cookie=await sync_to_async(cookie_of)(alice))
    await made.connect(timeout=15)
    await frames_until(made, "cf_agent_mcp_servers")
    instance = await sync_to_async(make_instance)(alice, "new")
    turn = await sync_to_async(accept)(instance, "r1")
    await eventually(lambda: newest_feed().seen.up_to == 1)
    ring_for(instance, turn)
    await sync_to_async(answer)(turn)
    assert await sent(made, dones=1) == IN_ORDER[:4]
    await made.disconnect()


@pytest.mark.parametrize("order", [(2, 0, 1), (1, 0, 2), (0, 2), (2,), (0, 0, 1, 2, 1)])
async def test_notifications_out_of_order_doubled_or_lost_do_not_change_the_order(
    instance: AgentInstance, socket: Any, order: tuple[int, ...]
) -> None:
    turns = [await sync_to_async(accept)(instance, request) for request in REQUESTS]
    found = []
    for number in order:
        ring_for(instance, turns[number])
        found += await told_until_now(instance, socket)
    for turn in turns:
        await sync_to_async(answer)(turn)
        found += await sent(socket, dones=1)
    assert found == IN_ORDER
    assert await socket.receive_nothing(timeout=1)


async def test_own_request_waits_for_one_whose_notification_is_late(instance: AgentInstance, socket: Any) -> None:
    first = await sync_to_async(accept)(instance, "r1")
    body = json.dumps({"messages": [text_message("mine", "user")]})
    request = {"type": "cf_agent_use_chat_request", "id": "r2", "init": {"method": "POST", "body": body}}
    await socket.send_to(json.dumps(request))
    await eventually(lambda: any(turn.request_id == "r2" for turn in newest_feed().pending.values()))
    ring_for(instance, first)
    await sync_to_async(answer)(first)
    found = await sent(socket, dones=1)
    await sync_to_async(answer)(await Turn.objects.aget(request_id="r2"))
    found += await sent(socket, dones=1)
    assert found == [pair for pair in IN_ORDER if pair[0] != "r3"]
    assert await socket.receive_nothing(timeout=1)


async def test_acknowledging_the_next_turn_does_not_repeat_the_one_that_is_sent(
    instance: AgentInstance, socket: Any, settings: Any
) -> None:
    settings.THINK_STREAM_IDLE_SECONDS = 60  # an end is noticed when it is sent, and not before
    first, second = [await sync_to_async(accept)(instance, request) for request in REQUESTS[:2]]
    await sync_to_async(begin)(first)
    await get_log().open(first.pk, fence=1, floor=3)  # of a stream that it does not know a follower asks the rows
    ring_for(instance, first)
    while (await told_one(socket)) != ("r1", "2"):
        pass
    await sync_to_async(end)(first)
    await sync_to_async(begin)(second)
    await socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r2"}))
    await socket.send_to(json.dumps({"type": "rpc", "id": "after", "method": "none", "args": []}))
    await frames_until(socket, "rpc")  # frames are handled one after another
    await close_stream(first.pk)
    assert await sent(socket, dones=1) == [("r1", "done")]
    await sync_to_async(end)(second)
    await close_stream(second.pk)
    assert await sent(socket, dones=1) == [("r2", what) for what in ("0", "1", "2", "done")]


async def test_the_list_ends_with_the_next_question_also_where_its_turn_has_begun(
    instance: AgentInstance, socket: Any, settings: Any
) -> None:
    """Clients keep the answer that they are sent at the end of their list, and put the next one behind it."""
    settings.THINK_STREAM_IDLE_SECONDS = 60  # the end is noticed when the next turn has begun
    first, second = [await sync_to_async(accept)(instance, request) for request in REQUESTS[:2]]
    await sync_to_async(begin)(first)
    await get_log().open(first.pk, fence=1, floor=3)
    for turn in (first, second):
        ring_for(instance, turn)
    while (await told_one(socket)) != ("r1", "2"):
        pass
    await sync_to_async(end)(first)
    await sync_to_async(begin)(second)
    await close_stream(first.pk)
    await frames_until(socket, "done")
    shown = json.loads(await socket.receive_from(timeout=15))
    assert [message["id"] for message in shown["messages"]][1:3] == ["answer-r1", "question-r2"]


@pytest.mark.parametrize("outcome", ["completed", "failed"])
@pytest.mark.parametrize("before", [0, 1])
async def test_a_turn_that_ended_before_its_notification_was_received_is_acknowledged_and_sent_once(
    instance: AgentInstance, socket: Any, before: int, outcome: str
) -> None:
    """A probe finds the turn before its notification comes; the client acknowledges it when it is over already."""
    turns = [await sync_to_async(accept)(instance, request) for request in REQUESTS[: before + 1]]
    for turn in turns[:before]:
        await sync_to_async(answer)(turn)
    turn = turns[before]
    await sync_to_async(begin)(turn)
    await socket.send_to(json.dumps({"type": "cf_agent_stream_resume_request"}))
    [*_, offered] = await frames_until(socket, "cf_agent_stream_resuming")
    assert offered["id"] == turn.request_id
    await sync_to_async(end)(turn)
    await Fiber.objects.filter(pk=turn.fiber_id).aupdate(status=outcome)
    await socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": turn.request_id}))
    found = await sent(socket, dones=before + 1)
    if outcome == "failed":  # what is stored of it follows, as published clients drop what they have not shown yet
        assert "cf_agent_message_updated" in await socket.receive_from()
    for late in turns:
        ring_for(instance, late)
    assert await socket.receive_nothing(timeout=1)
    assert found == [(request, what) for request in REQUESTS[: before + 1] for what in ("0", "1", "2", "done")]


async def test_a_probe_finds_a_turn_that_is_over_and_still_to_be_sent(
    instance: AgentInstance, socket: Any, settings: Any, has_looked: threading.Event
) -> None:
    """Who answered a call asks for the turn that follows; it may have been quicker than the question."""
    settings.THINK_STREAM_IDLE_SECONDS = 3  # until then no one notices that it is over
    turn = await sync_to_async(accept)(instance, "r1")
    ring_for(instance, turn)
    await frames_until(socket, "cf_agent_chat_messages")
    assert await asyncio.to_thread(has_looked.wait, 10)
    await sync_to_async(answer)(turn)
    await socket.send_to(json.dumps({"type": "cf_agent_stream_resume_request", "probeId": "p"}))
    [*_, offered] = await frames_until(socket, "cf_agent_stream_resuming")
    assert (offered["id"], offered["probeId"]) == ("r1", "p")
    await socket.send_to(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "r1"}))
    assert await sent(socket, dones=1) == IN_ORDER[:4]
    await socket.send_to(json.dumps({"type": "cf_agent_stream_resume_request", "probeId": "q"}))
    assert (await frames_until(socket, "cf_agent_stream_resume_none"))[-1]["probeId"] == "q"


async def test_a_request_that_is_sent_again_before_its_notification_was_received_is_sent_once(
    instance: AgentInstance, socket: Any
) -> None:
    """It was admitted over the line that was cut, after this one had looked; it is over when it comes again."""
    turn = await sync_to_async(accept)(instance, "r1")
    await sync_to_async(answer)(turn)
    body = json.dumps({"messages": [text_message("question-r1", "user")]})
    request = {"type": "cf_agent_use_chat_request", "id": "r1", "init": {"method": "POST", "body": body}}
    await socket.send_to(json.dumps(request))
    found = await sent(socket, dones=1)
    ring_for(instance, turn)
    assert await socket.receive_nothing(timeout=1)
    assert found == IN_ORDER[:4]


@pytest.mark.usefixtures("looks_often")
async def test_a_chosen_sibling_is_sent_although_its_notification_is_lost(instance: AgentInstance, socket: Any) -> None:
    assert instance.session_id is not None
    turn = await sync_to_async(accept)(instance, "r1")
    await sync_to_async(answer)(turn)
    await sent(socket, dones=1)
    other = text_message("second", "assistant")
    await sync_to_async(put_assistant)(instance.session_id, other, after="question-r1")  # shown from now on
    shown = (await frames_until(socket, "cf_agent_chat_messages"))[-1]["messages"]
    assert [message["id"] for message in shown] == ["question-r1", "second"]
    assert await socket.receive_nothing(timeout=1)  # once


@pytest.mark.usefixtures("looks_often")
async def test_a_changed_message_is_sent_although_its_notification_is_lost(
    instance: AgentInstance, socket: Any
) -> None:
    assert instance.session_id is not None
    turn = await sync_to_async(accept)(instance, "r1")
    await sync_to_async(answer)(turn)
    await sent(socket, dones=1)
    changed: Part = {"type": "text", "text": "changed"}
    await sync_to_async(update_message)(instance.session_id, "answer-r1", lambda m: {**m, "parts": [changed]})
    shown = (await frames_until(socket, "cf_agent_chat_messages"))[-1]["messages"]
    assert shown[-1]["parts"] == [changed]
    assert await socket.receive_nothing(timeout=1)


@pytest.mark.long
async def test_a_change_whose_notification_was_received_is_not_sent_again(
    instance: AgentInstance, socket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert instance.session_id is not None
    turn = await sync_to_async(accept)(instance, "r1")
    ring_for(instance, turn)
    await sync_to_async(answer)(turn)
    await sent(socket, dones=1)
    changed: Part = {"type": "text", "text": "changed"}
    await sync_to_async(update_message)(instance.session_id, "answer-r1", lambda m: {**m, "parts": [changed]})
    await sync_to_async(notify_message_changed)(key_of(instance), instance.session_id, "answer-r1")
    assert (await frames_until(socket, "cf_agent_message_updated"))[-1]["message"]["parts"] == [changed]
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 0.1)
    assert await socket.receive_nothing(timeout=6)


@pytest.mark.usefixtures("looks_often")
async def test_an_answered_call_is_shown_as_answered_although_all_notifications_are_lost(
    instance: AgentInstance, socket: Any
) -> None:
    """The log shows the call as it was at the end of the turn, and takes the place of the transcript."""
    assert instance.session_id is not None
    turn = await sync_to_async(accept)(instance, "r1")
    await sync_to_async(answer)(turn)
    call: Part = {"type": "tool-pay", "toolCallId": "c1", "toolName": "pay", "state": "output-denied"}
    await sync_to_async(update_message)(instance.session_id, "answer-r1", lambda m: {**m, "parts": [call]})
    assert await sent(socket, dones=1) == IN_ORDER[:4]
    corrected = json.loads(await socket.receive_from(timeout=15))
    assert (corrected["type"], corrected["message"]["parts"]) == ("cf_agent_message_updated", [call])


async def test_an_answer_whose_log_began_anew_is_sent_as_stored_after_its_end(
    instance: AgentInstance, socket: Any
) -> None:
    """Published clients may keep parts of what they had, when records come a second time over one socket."""
    turn = await sync_to_async(accept)(instance, "r1")
    await sync_to_async(begin)(turn)
    await StreamSegment.objects.filter(stream=turn.pk).aupdate(epoch="first")
    ring_for(instance, turn)
    while (await told_one(socket)) != ("r1", "2"):
        pass
    await StreamSegment.objects.filter(stream=turn.pk).aupdate(epoch="second")
    while (await told_one(socket)) != ("r1", "2"):
        pass
    await sync_to_async(end)(turn)
    await frames_until(socket, "done")
    corrected = json.loads(await socket.receive_from(timeout=15))
    assert (corrected["type"], corrected["message"]["id"]) == ("cf_agent_message_updated", "answer-r1")
