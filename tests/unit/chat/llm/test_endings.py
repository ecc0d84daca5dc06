"""Servers that end an answer in odd ways, byte by byte as they do it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest

from chat.core.model.language_model import Finish, FinishReason, LanguageModel
from chat.errors import ModelRejected, NetworkLost
from chat.llm.adapters import adapter, transport
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.transport import close_clients
from chat.llm.endpoint import Endpoint, is_loopback
from chat.llm.testing import collect, collect_until_error, make_request, text_of

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
TEXT = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}\n\n'
DONE = b"data: [DONE]\n\n"


@contextlib.asynccontextmanager
async def serve(*pieces: bytes, stay: bool = False) -> AsyncIterator[LanguageModel]:
    """A server that answers every request with these pieces, and then closes or stays silent."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.01)
            if stay:
                await reader.read()
                await asyncio.sleep(30)  # a server that neither answers nor closes
        writer.close()

    tasks = set()

    async def track(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        tasks.add(task)
        await answer(reader, writer)

    server = await asyncio.start_server(track, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield ChatCompletionsModel(Endpoint(provider="odd", base_url=f"http://127.0.0.1:{port}/v1"), "m")
    finally:
        await close_clients()
        server.close()
        for task in tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)


async def test_usage_that_follows_the_finish_is_waited_for() -> None:
    async with serve(HEAD + TEXT, STOP, USAGE, DONE) as model:
        finish = (await collect(model, make_request("x")))[-1]
    assert isinstance(finish, Finish)
    assert (finish.usage.input_tokens, finish.usage.output_tokens) == (3, 1)


@pytest.mark.parametrize("rest", [(STOP,), (STOP, USAGE), (STOP, b"data: {half"), (DONE,), (STOP, DONE[:-2])])
async def test_an_answer_that_was_finished_is_whole_however_the_connection_ends(rest: tuple[bytes, ...]) -> None:
    async with serve(HEAD + TEXT, *rest) as model:
        events = await collect(model, make_request("x"))
    assert text_of(events) == "hi"
    assert isinstance(events[-1], Finish)
    assert events[-1].reason in (FinishReason.STOP, FinishReason.OTHER)


async def test_a_server_that_neither_closes_nor_sends_done_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "TAIL_SECONDS", 0.2)
    start = time.monotonic()
    async with serve(HEAD + TEXT, STOP, stay=True) as model:
        assert isinstance((await collect(model, make_request("x")))[-1], Finish)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("rest", [b"", TEXT[:-9], b"data: {", b": ping\n\n"])
async def test_an_answer_that_was_not_finished_is_lost(rest: bytes) -> None:
    async with serve(HEAD + TEXT, rest) as model:
        events, error = await collect_until_error(model, make_request("x"))
    assert isinstance(error, NetworkLost)
    assert text_of(events) == "hi"


async def test_bytes_cut_anywhere_are_put_together() -> None:
    whole = 'data: {"choices":[{"delta":{"content":"Füße 😀"}}]}\r\n\r\n'.encode() + STOP + DONE
    async with serve(HEAD, *(whole[at : at + 7] for at in range(0, len(whole), 7))) as model:
        assert text_of(await collect(model, make_request("x"))) == "Füße 😀"


@pytest.mark.parametrize("kind", [b"text/event-stream", b"application/json"])
async def test_an_answer_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, kind: bytes) -> None:
    monkeypatch.setattr(transport, "MAX_EVENT_BYTES", 1000)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\n\r\n"
    async with serve(head, *[b"data: " + b"x" * 400] * 5) as model:
        with pytest.raises(ModelRejected, match="more in one piece"):
            await collect(model, make_request("x"))


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://localhost/v1", True),
        ("http://[::1]:8/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://10.0.0.1/v1", False),
        ("nonsense", False),
    ],
)
def test_loopback_is_recognised(url: str, here: bool) -> None:
    assert is_loopback(url) is here
