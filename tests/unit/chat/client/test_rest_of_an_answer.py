"""The rest of an answer over HTTP: a stream that was cut or began anew is never taken for the rest."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from chat.client.bounded_queue import Backpressure
from chat.client.completion import Completion
from chat.client.conversation_state import ConversationState
from chat.client.errors import ClientError, ConnectionFailed
from chat.client.http_api import HttpApi
from chat.client.options import Options
from chat.core.wire import frames
from chat.core.wire.server_frames import parse_server
from sessions_app.core.messages.shapes import Message

CHUNK = 'id: 2\ndata: {"type":"start-step"}\n\n'
START = 'id: 2\ndata: {"type":"start","messageId":"a1"}\n\n'
STORED: list[Message] = [
    {"id": name, "role": role, "parts": []} for name, role in (("q1", "user"), ("a1", "assistant"))
]
END = 'event: end\ndata: {"outcome":"completed"}\n\n'


@contextlib.asynccontextmanager
async def serving(stream: str) -> AsyncIterator[HttpApi]:
    """A client of a server that has one turn, whose stream says this."""
    bodies = {
        "/api/v1/instances": json.dumps({"id": "agt_1"}),
        "/api/v1/instances/agt_1/turns?limit=200": json.dumps({"items": [{"id": "trn_1", "request_id": "r1"}]}),
        "/api/v1/turns/trn_1/stream?offset=2": stream,
        "/api/v1/turns/trn_1/stream?offset=0": stream,
        "/agents/assistant/room/get-messages": json.dumps(STORED),
    }

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        body = bodies[path].encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    web = HttpApi(f"http://{host}:{port}", "/agents/assistant/room", "assistant", "conversation", {})
    async with asyncio.timeout(20), server:
        try:
            yield web
        finally:
            await web.close()


async def test_the_rest_is_the_chunks_up_to_the_end() -> None:
    async with serving(CHUNK + END) as web:
        assert await web.rest("r1", 2) == (['{"type":"start-step"}'], "completed")


async def test_a_stream_without_an_end_is_asked_for_again() -> None:
    async with serving(CHUNK) as web:
        with pytest.raises(ConnectionFailed) as caught:
            await web.rest("r1", 2)
    assert caught.value.retryable


async def test_a_stream_that_begins_anew_is_no_rest() -> None:
    async with serving("event: reset\ndata: {}\n\n" + CHUNK + END) as web:
        with pytest.raises(ClientError) as caught:
            await web.rest("r1", 2)
    assert not caught.value.retryable


async def test_a_turn_that_ended_while_the_client_was_away_is_in_its_messages() -> None:
    """The end is sent before the transcript that lists the answer."""
    async with serving(START + END) as web:
        completion = Completion(web, Options())
        conversation = completion.conversation = ConversationState(
            Backpressure(), fetch_rest=completion.fetch_rest, on_ended=lambda turn: None
        )
        turn = conversation.registry.begin("r1")
        turn.is_accepted = True
        conversation.messages = STORED[:1]
        conversation.connected(2)
        end = parse_server(frames.done("r1", "completed", replay=True))
        assert end is not None
        conversation.take(end)
        assert await turn.message() == STORED[1]
        assert conversation.messages == STORED
        await completion.close()
