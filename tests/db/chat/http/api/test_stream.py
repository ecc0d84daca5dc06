"""A turn's stream as server-sent events: by offset, live, resumable, guarded, and cheap while idle."""

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import OperationalError, transaction
from django.db.backends.utils import CursorWrapper
from django.test import AsyncClient
from django.utils import timezone
from redis.asyncio import Redis

from chat.access import api_tokens
from chat.core.wire import chunks
from chat.http.sse import start_offset
from chat.models import AgentInstance, ApiToken, Turn
from chat.streams.logs.log import close_logs
from chat.streams.logs.redis_log import keys_of
from chat.streams.reader import close_stream
from chat.streams.writing.writer import StreamWriter
from fibers.models import Fiber
from tests.db.chat.conftest import make_turn
from tests.db.chat.streams.support import eventually

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., AgentInstance]


@pytest.fixture
async def turn(alice: User, make_instance: Make) -> AsyncIterator[Turn]:
    def make() -> Turn:
        return make_turn(make_instance(alice), status="running")

    yield await sync_to_async(make)()
    await close_logs()


@pytest.fixture
async def signed_in_client(alice: User) -> AsyncClient:
    made = AsyncClient()
    await made.aforce_login(alice)
    return made


async def write(turn: Turn, *texts: str) -> None:
    async with StreamWriter(turn.id, fence=1, ctx_fenced=transaction.atomic) as writer:
        for text in texts:
            writer.write({"type": "data-note", "data": text})
            await writer.flush()


async def finish(turn: Turn) -> None:
    def end() -> None:
        Fiber.objects.filter(pk=turn.fiber_id).update(status="completed", finished_at=timezone.now())
        Turn.objects.filter(pk=turn.pk).update(finished_at=timezone.now())

    await sync_to_async(end)()
    await close_stream(turn.id)


class Events:
    """What a browser makes of the bytes of an event stream."""

    def __init__(self, response: Any) -> None:
        self._source = response.streaming_content
        self._text = ""
        self.comments: list[str] = []

    async def __aiter__(self) -> AsyncIterator[tuple[str, str, str]]:
        async for piece in self._source:
            self._text += piece.decode()
            while "\n\n" in self._text:
                block, self._text = self._text.split("\n\n", 1)
                fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
                self.comments += [line for line in block.splitlines() if line.startswith(":")]
                if fields:
                    yield fields.get("event", "message"), fields.get("id", ""), fields["data"]

    async def all(self) -> list[tuple[str, str, str]]:
        return [event async for event in self]


async def get(client: AsyncClient, turn: Turn, query: str = "", **headers: str) -> Any:
    return await client.get(f"/api/v1/turns/{turn.id}/stream{query}", headers=headers)


async def test_a_final_turn_replays_and_ends(signed_in_client: AsyncClient, turn: Turn) -> None:
    await write(turn, "a", "b", "c")
    await finish(turn)
    response = await get(signed_in_client, turn)
    assert response["Content-Type"] == "text/event-stream; charset=utf-8"
    assert response["X-Accel-Buffering"] == "no"
    assert response["x-vercel-ai-ui-message-stream"] == "v1"
    assert "no-cache" in response["Cache-Control"]
    async with asyncio.timeout(10):
        *chunks, end = await Events(response).all()
    assert [(kind, number) for kind, number, _ in chunks] == [("message", "0"), ("message", "1"), ("message", "2")]
    assert [json.loads(data)["data"] for *_, data in chunks] == ["a", "b", "c"]
    assert end[0] == "end"
    facts = json.loads(end[2])
    assert (facts["turn_id"], facts["outcome"], facts["message_id"]) == (turn.id, "completed", turn.assistant_id)


async def test_a_browser_goes_on_where_it_was(signed_in_client: AsyncClient, turn: Turn) -> None:
    await write(turn, "a", "b", "c")
    await finish(turn)
    async with asyncio.timeout(10):
        by_query = await Events(await get(signed_in_client, turn, "?offset=2")).all()
        by_header = await Events(await get(signed_in_client, turn, "?offset=0", **{"Last-Event-ID": "1"})).all()
    assert [number for _, number, _ in by_query] == ["2", ""]
    assert by_header == by_query


async def test_chunks_arrive_live_and_the_end_follows_the_turn(signed_in_client: AsyncClient, turn: Turn) -> None:
    await write(turn, "early")
    events = Events(await get(signed_in_client, turn))
    async with asyncio.timeout(15), aclosing(aiter(events)) as arriving:  # type: ignore[type-var]
        assert json.loads((await anext(arriving))[2])["data"] == "early"
        await write(turn, "late")
        assert json.loads((await anext(arriving))[2])["data"] == "late"
        await finish(turn)
        assert (await anext(arriving))[0] == "end"
        with pytest.raises(StopAsyncIteration):
            await anext(arriving)


async def test_a_pause_is_filled_with_comments(signed_in_client: AsyncClient, turn: Turn, settings: Any) -> None:
    settings.THINK_STREAM_KEEP_ALIVE_SECONDS = 0.05
    events = Events(await get(signed_in_client, turn))
    reading = asyncio.create_task(events.all())
    await eventually(lambda: events.comments.count(": keep-alive") >= 3)
    await finish(turn)
    async with asyncio.timeout(10):
        assert [kind for kind, *_ in await reading] == ["end"]


@pytest.mark.parametrize("change", ["revoke", "deactivate"])
async def test_authority_that_ends_ends_the_stream(alice: User, turn: Turn, settings: Any, change: str) -> None:
    settings.THINK_STREAM_KEEP_ALIVE_SECONDS = 0.05
    _row, secret = await sync_to_async(api_tokens.create_token)(alice, name="t")
    events = Events(await get(AsyncClient(), turn, Authorization=f"Bearer {secret}"))
    reading = asyncio.create_task(events.all())
    await eventually(lambda: ": keep-alive" in events.comments)  # it was asked for, and held
    if change == "revoke":
        await ApiToken.objects.aupdate(revoked_at=timezone.now())
    else:
        await User.objects.aupdate(is_active=False)
    async with asyncio.timeout(10):
        assert await reading == []  # it closed, and no end was sent: the turn still runs


async def test_a_foreign_turn_is_not_found(bob: User, turn: Turn) -> None:
    other = AsyncClient()
    await other.aforce_login(bob)
    response = await get(other, turn)
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")
    assert (await get(AsyncClient(), turn)).status_code == 401
    assert (await get(AsyncClient(), turn, Authorization="Bearer think_x")).status_code == 401


async def test_a_stream_asks_the_database_only_on_the_bounded_executor(
    signed_in_client: AsyncClient, turn: Turn, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.THINK_STREAM_KEEP_ALIVE_SECONDS = 0.05
    # A query on the request's own thread would keep that thread's connection open as long as the stream.
    acting_for_client: set[str] = set()
    execute = CursorWrapper.execute

    def noted(self: CursorWrapper, *args: Any, **kwargs: Any) -> Any:
        acting_for_client.add(threading.current_thread().name)
        return execute(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(CursorWrapper, "execute", noted)
        streams = [Events(await get(signed_in_client, turn)) for _ in range(12)]
        readings = [asyncio.create_task(events.all()) for events in streams]
        await eventually(lambda: all(events.comments.count(": keep-alive") >= 2 for events in streams), 15)
    await finish(turn)
    async with asyncio.timeout(15):
        await asyncio.gather(*readings)
    assert acting_for_client
    assert [name for name in acting_for_client if not name.startswith("think-db")] == []


@pytest.mark.parametrize(
    ("header", "expected"), [(None, 5), ("", 5), ("0", 1), ("41", 42), ("-1", 5), ("x", 5), ("٣", 5), ("9" * 20, 5)]
)
def test_the_start_is_after_the_last_event_seen(header: str | None, expected: int) -> None:
    assert start_offset(header, 5) == expected


@pytest.mark.parametrize("offset", ["99999999999999999999", str(2**53), "-1", "x", "1.5", "", "NaN"])
async def test_an_offset_that_no_stream_can_have_is_refused(
    signed_in_client: AsyncClient, turn: Turn, offset: str
) -> None:
    response = await get(signed_in_client, turn, f"?offset={offset}")
    assert (response.status_code, response["Content-Type"]) == (422, "application/problem+json")
    problem = json.loads(response.content)
    assert problem["code"] == "invalid"
    assert [error["where"][-1] for error in problem["data"]["errors"]] == ["offset"]


@pytest.mark.parametrize("offset", [3, 2**53 - 1])
async def test_an_offset_beyond_the_end_begins_again(signed_in_client: AsyncClient, turn: Turn, offset: int) -> None:
    await write(turn, "a", "b")
    await finish(turn)
    async with asyncio.timeout(10):
        events = await Events(await get(signed_in_client, turn, f"?offset={offset}")).all()
    assert [(kind, number) for kind, number, _ in events] == [
        ("reset", ""), ("message", "0"), ("message", "1"), ("end", "")
    ]  # fmt: skip


async def test_a_failure_inside_a_stream_ends_the_response_and_is_logged_once(
    signed_in_client: AsyncClient, turn: Turn, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await write(turn, "a")
    async with Redis.from_url(redis_url) as redis:
        await redis.hdel(keys_of(turn.id)[1], "next")  # no program of ours leaves a log like this
    with caplog.at_level(logging.ERROR):
        async with asyncio.timeout(10):
            events = await Events(await get(signed_in_client, turn)).all()
    assert events == []  # no `end`: it was cut
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], TypeError)


async def test_authority_that_cannot_be_asked_for_ends_the_stream(
    signed_in_client: AsyncClient,
    turn: Turn,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.THINK_STREAM_KEEP_ALIVE_SECONDS = 0.05
    events = Events(await get(signed_in_client, turn))

    def fail(*_arguments: Any) -> bool:
        raise OperationalError

    monkeypatch.setattr("chat.http.api.endpoints.stream.holds_role", fail)
    async with asyncio.timeout(10):
        assert await events.all() == []
    assert len([record for record in caplog.records if record.levelno >= logging.ERROR]) == 1


async def test_a_client_of_ag_ui_gets_its_events_and_goes_on_where_it_was(
    turn: Turn, signed_in_client: AsyncClient
) -> None:
    async with StreamWriter(turn.id, fence=1, ctx_fenced=transaction.atomic) as writer:
        for chunk in (chunks.start("m1"), chunks.text_start("t1"), chunks.text_delta("t1", "Two")):
            writer.write(chunk)
            await writer.flush()
        writer.write(chunks.text_end("t1"))
    await finish(turn)

    async def read(**headers: str) -> list[tuple[str, dict[str, Any]]]:
        accept = "text/event-stream; profile=ag-ui"
        reply: Any = await signed_in_client.get(
            f"/api/v1/turns/{turn.id}/stream", headers={"Accept": accept, **headers}
        )
        assert reply["Content-Type"].startswith("text/event-stream")
        return [(event_id, json.loads(data)) async for _, event_id, data in Events(reply)]

    whole = await read()
    assert [event["type"] for _, event in whole] == [
        *("RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED")
    ]
    assert whole[0][1]["runId"] == turn.id
    (last,) = [event_id for event_id, event in whole if event["type"] == "TEXT_MESSAGE_CONTENT"]
    rest = await read(**{"Last-Event-ID": last})
    assert [event for _, event in rest] == [event for _, event in whole[3:]]


async def test_a_client_that_asks_for_lines_of_json_gets_text_thoughts_and_calls(
    turn: Turn, signed_in_client: AsyncClient
) -> None:
    async with StreamWriter(turn.id, fence=1, ctx_fenced=transaction.atomic) as writer:
        call = chunks.tool_input_available("c1", "note", {"text": "a"})
        for chunk in (chunks.start("m1"), call, chunks.text_start("t1"), chunks.text_delta("t1", "Two")):
            writer.write(chunk)
        writer.write(chunks.text_end("t1"))
    await finish(turn)
    reply: Any = await signed_in_client.get(
        f"/api/v1/turns/{turn.id}/stream", headers={"Accept": "application/x-ndjson"}
    )
    assert reply["Content-Type"] == "application/x-ndjson; charset=utf-8"
    text = b"".join([piece async for piece in reply]).decode()
    assert text.split() == ['{"t":"tool","n":"note","a":{"text":"a"}}', '{"t":"text","d":"Two"}']
