"""The AI SDK's own socket: requests, their answers and their refusals (`WebSocketChatTransport` of `ai`)."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone
from redis.asyncio import Redis

from chat.access import api_tokens
from chat.http.usechat import consumer
from chat.http.usechat.playback import LOST
from chat.models import AgentInstance, ApiToken, Turn, TurnSeen
from chat.realtime import inbound, monitor
from chat.streams.logs.log import close_logs
from chat.streams.logs.redis_log import keys_of
from sessions_app.core.messages.shapes import Part
from sessions_app.messages.services import Leaf, place_messages, queue_messages
from tests.db.chat.access_rows import all_rows
from tests.db.chat.sockets import connection, cookie_of
from tests.db.chat.streams.support import eventually
from tests.db.chat.use_chat import (
    TEXT,
    Json,
    Page,
    answer,
    asks,
    assistant,
    chunks_of,
    end,
    last_turn,
    turns,
    user,
    write,
)

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/agents/assistant/talk/chat"
TYPES = ["start", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"]


class SdkLine:
    """One socket of a transport: frames out, and frames in by request."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket

    async def send(self, request_id: str, *messages: Any, **more: Any) -> None:
        frame = {"type": "send", "requestId": request_id, "id": "c", "trigger": "submit-message", "headers": {}}
        await self.raw({**frame, "body": {}, "messages": list(messages), **more})

    async def resume(self, request_id: str, **more: Any) -> None:
        await self.raw({"type": "resume", "requestId": request_id, "id": "c", "headers": {}, "body": {}, **more})

    async def abort(self, request_id: str) -> None:
        await self.raw({"type": "abort", "requestId": request_id})

    async def raw(self, frame: Any) -> None:
        await self.socket.send_to(text_data=frame if isinstance(frame, str) else json.dumps(frame))

    async def frame(self) -> Json:
        return dict(json.loads(await self.socket.receive_from(timeout=10)))

    async def until_end(self) -> list[Json]:
        """Frames up to one that ends a request."""
        found = [await self.frame()]
        while found[-1]["type"] in {"start", "chunk"}:
            found.append(await self.frame())
        return found

    async def closed(self) -> tuple[int, str]:
        while (output := await self.socket.receive_output(timeout=10))["type"] == "websocket.send":
            pass
        return output["code"], output.get("reason", "")


OpenLine = Callable[..., Awaitable[SdkLine]]


@pytest.fixture
async def open_line() -> AsyncIterator[OpenLine]:
    """Opens a socket of a user's."""
    opened = []

    async def go(user: User, path: str = PATH) -> SdkLine:
        socket = connection(path, cookie=await sync_to_async(cookie_of)(user))
        assert (await socket.connect(timeout=15))[0]
        opened.append(socket)
        return SdkLine(socket)

    yield go
    for socket in opened:
        await socket.disconnect()
    await close_logs()


@pytest.fixture
async def sdk_line(open_line: OpenLine, alice: User) -> SdkLine:
    """A socket of Alice's to the conversation `talk`."""
    return await open_line(alice)


def chunks_in(frames: list[Json]) -> list[Json]:
    """The chunks, whose numbers have no gap."""
    found = [frame for frame in frames if frame["type"] == "chunk"]
    first = found[0]["sequence"] if found else 0
    assert [frame["sequence"] for frame in found] == list(range(first, first + len(found)))
    return [frame["chunk"] for frame in found]


async def accepted(count: int = 1, *, seconds: float = 10) -> None:
    """Wait until so many turns are accepted."""

    async def are_there() -> bool:
        return await Turn.objects.acount() >= count

    await eventually(are_there, seconds)


async def test_nothing_is_sent_before_a_request(sdk_line: SdkLine) -> None:
    assert await sdk_line.socket.receive_nothing(timeout=0.3)
    assert not await AgentInstance.objects.aexists()


async def test_a_request_is_answered_with_the_chunks_of_the_http_transport(sdk_line: SdkLine, page: Page) -> None:
    await sdk_line.send("r1", user("u1"), body={"tone": "dry"}, metadata={"any": 1})
    response = await page.say("u1", tone="dry")  # the same message: the same turn
    turn = await last_turn()
    assert (len(await turns()), turn.input_ids, turn.body) == (1, ["u1"], {"tone": "dry"})
    await answer(turn)
    await end(turn, parts=[TEXT])
    frames = await sdk_line.until_end()
    assert {frame["requestId"] for frame in frames} == {"r1"}
    assert chunks_in(frames) == await chunks_of(response)
    assert [chunk["type"] for chunk in chunks_in(frames)] == TYPES
    assert frames[-1] == {"type": "end", "requestId": "r1"}


async def test_an_accepted_request_is_committed_whatever_becomes_of_the_line(sdk_line: SdkLine) -> None:
    await sdk_line.send("r1", user("u1"))
    await accepted()
    await sdk_line.socket.disconnect()
    turn = await last_turn()
    assert (turn.fiber.status, turn.fiber.cancel_requested_at) == ("pending", None)


async def test_an_idempotency_key_among_the_headers_is_one_turn(sdk_line: SdkLine, talk: AgentInstance) -> None:
    again: Json = {"trigger": "regenerate-message", "headers": {"idempotency-key": "k1"}}
    for request_id in ("r1", "r2"):
        await sdk_line.send(request_id, user("q1", "text of q1"), **again)
        if request_id == "r1":
            await accepted(2)
            await end(await last_turn(), parts=[TEXT])
        assert (await sdk_line.until_end())[-1]["type"] == "end"
    assert len(await turns()) == 2  # one is of the conversation before


async def test_two_requests_share_a_line(sdk_line: SdkLine) -> None:
    await sdk_line.send("r1", user("u1"))
    await sdk_line.send("r2", user("u2"))
    await accepted(2)
    for turn, text in zip(await turns(), ("One.", "Two."), strict=True):
        await answer(turn, text)
        await end(turn, parts=[TEXT])
    frames = [*await sdk_line.until_end(), *await sdk_line.until_end()]
    for request_id, text in (("r1", "One."), ("r2", "Two.")):
        chunks = chunks_in([frame for frame in frames if frame["requestId"] == request_id])
        assert [chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta"] == [text]


async def test_a_line_has_so_many_requests_at_a_time(sdk_line: SdkLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "MAX_REQUESTS", 1)
    await sdk_line.send("r1", user("u1"))
    await sdk_line.send("r2", user("u2"))
    refused = await sdk_line.frame()
    assert (refused["type"], refused["requestId"]) == ("error", "r2")
    assert "1 requests at a time" in refused["errorText"]
    assert [turn.input_ids for turn in await turns()] == [["u1"]]


# Abort


async def test_an_abort_stops_the_turn_and_no_other(sdk_line: SdkLine) -> None:
    await sdk_line.send("r1", user("u1"))
    await sdk_line.send("r2", user("u2"))
    await sdk_line.abort("r1")
    assert await sdk_line.until_end() == [
        {"type": "chunk", "requestId": "r1", "sequence": 0, "chunk": {"type": "abort"}},
        {"type": "end", "requestId": "r1"},
    ]
    first, second = await turns()
    assert (first.fiber.status, second.fiber.status) == ("cancelled", "pending")


async def test_an_abort_of_a_request_that_has_ended_or_never_was_stops_nothing(sdk_line: SdkLine) -> None:
    await sdk_line.send("r1", user("u1"))
    await accepted()
    turn = await last_turn()
    await end(turn, "failed", text="The model is tired.")
    await sdk_line.until_end()
    await sdk_line.send("r2", user("u2"))
    await sdk_line.abort("r1")  # as clients do at an error: they leave the stream
    await sdk_line.abort("unknown")
    await sdk_line.resume("r3", lastSequence=0)
    assert (await sdk_line.frame())["type"] == "start"
    assert (await last_turn()).fiber.cancel_requested_at is None


async def test_after_a_failed_turn_no_other_is_sent_that_the_clients_leaving_would_stop(
    open_line: OpenLine, sdk_line: SdkLine, alice: User
) -> None:
    await sdk_line.send("r1", user("u1"))
    await sdk_line.send("r2", user("u2"))
    second = await open_line(alice)
    await accepted(2)
    await second.resume("r3")
    assert (await second.frame())["type"] == "start"
    await end((await turns())[0], "failed", text="The model is tired.")
    assert chunks_in(await second.until_end()) == [{"type": "error", "errorText": "The model is tired."}]
    await second.abort("r3")
    await second.resume("r4")
    assert (await second.frame())["type"] == "start"
    assert (await turns())[1].fiber.cancel_requested_at is None


# Resume


async def test_without_an_answer_under_way_nothing_is_active(sdk_line: SdkLine) -> None:
    await sdk_line.resume("r1")
    assert await sdk_line.frame() == {"type": "no-active", "requestId": "r1"}


async def test_an_answer_is_resumed_from_its_beginning_or_after_the_last_chunk(
    open_line: OpenLine, sdk_line: SdkLine, alice: User
) -> None:
    await sdk_line.send("r1", user("u1"))
    await accepted()
    turn = await last_turn()
    begin: Json = {"type": "text-start", "id": "p0"}
    await write(turn, {"type": "start", "messageId": turn.assistant_id}, {"type": "start-step"}, begin)
    seen = [await sdk_line.frame() for _ in range(3)]
    await sdk_line.socket.disconnect()
    whole, rest = await open_line(alice), await open_line(alice)
    await whole.resume("r2")
    await rest.resume("r3", lastSequence=seen[1]["sequence"], body={"messageId": turn.assistant_id})
    assert [(await each.frame())["type"] for each in (whole, rest)] == ["start", "start"]
    async with asyncio.timeout(10):
        await end(turn, parts=[TEXT])
    from_beginning, after = chunks_in(await whole.until_end()), chunks_in(await rest.until_end())
    assert from_beginning[:3] == [frame["chunk"] for frame in seen]
    assert after == from_beginning[2:]


async def test_numbers_of_another_answer_are_refused(sdk_line: SdkLine) -> None:
    await sdk_line.send("r1", user("u1"))
    await sdk_line.resume("r2", lastSequence=3, body={"messageId": "another"})
    refused = await sdk_line.frame()
    assert (refused["type"], refused["requestId"]) == ("error", "r2")
    assert "without lastSequence" in refused["errorText"]


async def test_an_answer_that_has_just_ended_is_sent_as_it_is_stored(
    sdk_line: SdkLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sdk_line.send("r1", user("u1"))
    await accepted()
    turn = await last_turn()
    await answer(turn, "What the log says.")
    await end(turn, parts=[{"type": "step-start"}, TEXT])
    await sdk_line.until_end()
    await sdk_line.resume("r2")
    frames = await sdk_line.until_end()
    assert frames[0] == {"type": "start", "requestId": "r2"}
    chunks = chunks_in(frames)
    assert chunks[0] == {"type": "start", "messageId": turn.assistant_id}
    assert [chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta"] == ["An answer."]
    await sdk_line.resume("r3", lastSequence=2)  # its numbers are those of the log
    assert [chunk.get("delta") for chunk in chunks_in(await sdk_line.until_end())][:1] == ["What the log says."]
    await Turn.objects.aupdate(finished_at=timezone.now() - timedelta(seconds=61))
    await sdk_line.resume("r4")
    assert await sdk_line.frame() == {"type": "no-active", "requestId": "r4"}


async def test_an_answer_that_is_shown_no_more_is_not_sent(sdk_line: SdkLine) -> None:
    await sdk_line.send("r1", user("u1"))
    await accepted()
    await end(await last_turn(), parts=[TEXT])
    await sdk_line.until_end()

    def say_more() -> None:
        session_id = str(AgentInstance.objects.get().session_id)
        queue_messages(session_id, [user("u2")])
        place_messages(session_id, ["u2"], after=Leaf.ACTIVE)

    await sync_to_async(say_more)()
    await sdk_line.resume("r2")
    assert await sdk_line.frame() == {"type": "no-active", "requestId": "r2"}


async def test_a_failure_that_no_client_saw_is_sent_once(sdk_line: SdkLine, page: Page, alice: User) -> None:
    await page.say("u1")
    turn = await last_turn()
    await end(turn, "failed", text="The model is tired.")
    await sdk_line.resume("r1")
    assert chunks_in(await sdk_line.until_end()) == [{"type": "error", "errorText": "The model is tired."}]
    assert await TurnSeen.objects.filter(turn=turn, user_id=alice.pk).aexists()
    await sdk_line.resume("r2")
    assert await sdk_line.frame() == {"type": "no-active", "requestId": "r2"}


# Calls


async def test_an_answered_approval_continues_the_answer(sdk_line: SdkLine) -> None:
    """What `useChat` sends by itself once every approval of the last message has an answer."""
    part: Json = {"type": "tool-pay", "toolCallId": "c1", "input": {}, "state": "approval-requested"}
    part |= {"approval": {"id": "ap1"}}
    await sdk_line.send("r0", user("u1"))
    await accepted()
    first = await last_turn()
    await end(first, parts=[part])
    await sdk_line.until_end()
    answered = part | {"state": "approval-responded", "approval": {"id": "ap1", "approved": False}}
    await sdk_line.send("r1", user("u1"), assistant(first.assistant_id, cast("Part", answered)))
    await accepted(2)
    turn = await last_turn()
    assert turn.trigger == "continue"
    await answer(turn, "So be it.")
    await end(turn, parts=[TEXT])
    chunks = chunks_in(await sdk_line.until_end())
    assert chunks[0] == {"type": "start", "messageId": first.assistant_id}  # it goes on in the page's message
    await sdk_line.resume("r2", lastSequence=0)
    assert "continues another" in (await sdk_line.frame())["errorText"]


# Refusals

BROKEN = [
    "no JSON",
    "[]",
    json.dumps({"type": "cf_agent_chat_clear"}),
    json.dumps({"type": "abort"}),
    json.dumps({"type": "resume", "requestId": "r1", "id": "c", "lastSequence": -1}),
    json.dumps({"type": "send", "requestId": "r1", "id": "c", "trigger": "submit-message", "messages": [{}]}),
    json.dumps({"type": "send", "requestId": "r1", "id": "c", "trigger": "submit-message", "messages": 7}),
]


@pytest.mark.parametrize("text", BROKEN)
async def test_a_broken_frame_is_answered_and_changes_nothing(
    sdk_line: SdkLine, talk: AgentInstance, text: str
) -> None:
    before = await sync_to_async(all_rows)()
    await sdk_line.raw(text)
    refused = await sdk_line.frame()
    assert (refused["type"], refused["requestId"]) == ("error", "r1" if "r1" in text else "")
    assert refused["errorText"]
    assert await sync_to_async(all_rows)() == before
    await sdk_line.resume("r9")  # the line goes on
    assert (await sdk_line.frame())["requestId"] == "r9"


async def test_a_repeated_request_id_leaves_the_first_request_alone(sdk_line: SdkLine) -> None:
    await sdk_line.send("r1", user("u1"))
    await sdk_line.send("r1", user("u2"))
    await sdk_line.resume("r2")
    assert await sdk_line.frame() == {"type": "start", "requestId": "r2"}
    assert len(await turns()) == 1


async def test_a_large_request_is_read_and_other_large_frames_close(sdk_line: SdkLine) -> None:
    await sdk_line.send("r1", user("u1", "x" * 3_000_000))
    await accepted(seconds=30)
    await sdk_line.resume("r2", body={"text": "x" * 3_000_000})
    assert await sdk_line.closed() == (inbound.TOO_LARGE, "Only chat requests may have more than 2097152 bytes.")


async def test_a_flood_closes(sdk_line: SdkLine) -> None:
    for _ in range(inbound.MAX_FRAMES_PER_SECOND + 50):
        await sdk_line.abort("r")
    assert (await sdk_line.closed())[0] == inbound.FLOOD


async def test_authority_that_ends_closes_the_line_that_is_only_sent_to(
    open_line: OpenLine, alice: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.THINK_AUTHORITY_SECONDS = 0
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 0.05)
    _row, secret = await sync_to_async(api_tokens.create_token)(alice, name="t")
    socket = connection(PATH, query=f"token={secret}")
    assert (await socket.connect(timeout=15))[0]
    line = SdkLine(socket)
    await line.send("r1", user("u1"))
    await accepted()
    await ApiToken.objects.aupdate(revoked_at=timezone.now())
    assert (await line.closed())[0] == 4401
    await socket.disconnect()
    assert (await last_turn()).fiber.cancel_requested_at is None


async def test_a_log_that_is_broken_ends_the_request_with_an_error(
    sdk_line: SdkLine, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await sdk_line.send("r1", user("u1"))
    await accepted()
    turn = await last_turn()
    await write(turn, {"type": "start", "messageId": turn.assistant_id})
    async with Redis.from_url(redis_url) as redis:
        await redis.hdel(keys_of(turn.id)[1], "next")  # no program of ours leaves a log like this
    assert (await sdk_line.until_end())[-1] == {"type": "error", "requestId": "r1", "errorText": LOST}
    await sdk_line.resume("r2", lastSequence=0)  # the line goes on
    assert (await sdk_line.frame())["requestId"] == "r2"


async def test_a_name_that_reads_like_the_door_is_a_name(open_line: OpenLine, alice: User) -> None:
    """`%2F` is no border of segments: this is the agents' socket of the conversation `talk/chat`."""
    opened = await open_line(alice, "/agents/assistant/talk%2Fchat")
    assert (await opened.frame())["type"].startswith("cf_agent_")
    asked = await open_line(alice, "/agents/assistant/talk%2Fchat/chat")
    await asked.send("r1", *asks([user("u1")])["messages"])
    await accepted()
    assert [instance.name async for instance in AgentInstance.objects.all()] == ["talk/chat"]


async def test_a_socket_that_streams_nothing_is_closed_after_a_while(
    open_line: OpenLine, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "IDLE_SECONDS", 0.5)
    line, idle = await open_line(alice), await open_line(alice)
    await line.send("r1", user("u1"))
    await accepted()
    assert (await idle.closed())[0] == 1000
    assert await line.socket.receive_nothing(timeout=1.0)  # it waits for an answer
    turn = await last_turn()
    await answer(turn)
    await end(turn, parts=[TEXT])
    assert (await line.until_end())[-1]["type"] == "end"
    assert (await line.closed())[0] == 1000
