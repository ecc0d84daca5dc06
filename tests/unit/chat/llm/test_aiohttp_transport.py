"""The connections beneath the client: what they send, what they promise when something breaks, and what they keep."""

import asyncio
import contextlib
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2
import pytest

from chat.core.model.language_model import TextDelta
from chat.errors import NetworkLost, StreamStalled
from chat.llm.adapters import transport
from chat.llm.adapters.aiohttp_transport import AiohttpTransport
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.transport import close_clients
from chat.llm.endpoint import Endpoint
from chat.llm.testing import collect, collect_until_error, make_request, text_of

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

TEXT = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunked(*pieces: bytes, ends: bool = True) -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return body + (b"0\r\n\r\n" if ends else b"")


class Peer:
    """A server that sees connections and the bytes of requests."""

    def __init__(self, answer: Answer) -> None:
        self.connections = 0
        self.closed = asyncio.Event()
        self._answer = answer
        self._tasks: set[asyncio.Task[None] | None] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._answer(reader, writer)
        writer.close()
        self.closed.set()

    async def end(self) -> None:
        tasks = [task for task in self._tasks if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def peer(answer: Answer) -> AsyncIterator[tuple[Peer, int]]:
    there = Peer(answer)
    server = await asyncio.start_server(there.serve, "127.0.0.1", 0)
    try:
        yield there, server.sockets[0].getsockname()[1]
    finally:
        await close_clients()
        server.close()
        await there.end()


def model_at(port: int, host: str = "127.0.0.1", scheme: str = "http") -> ChatCompletionsModel:
    return ChatCompletionsModel(Endpoint(provider="odd", base_url=f"{scheme}://{host}:{port}/v1"), "m")


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    size = next(int(line[15:]) for line in head.lower().splitlines() if line.startswith(b"content-length:"))
    return head + await reader.readexactly(size)


def replies(*pieces: bytes) -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_request(reader)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()

    return answer


def breaks_after(piece: bytes) -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(piece)

    return answer


async def test_a_finished_answer_leaves_its_connection_for_the_next() -> None:
    async with peer(replies(STREAM + chunked(TEXT, STOP, DONE))) as (there, port):
        for _ in range(3):
            assert text_of(await collect(model_at(port), make_request("x"))) == "hi"
        assert there.connections == 1


async def test_an_answer_that_is_left_closes_its_connection() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(STREAM + chunked(TEXT, ends=False))
        await reader.read()

    async with peer(answer) as (there, port):
        events = model_at(port).stream(make_request("x"))
        await anext(events)
        await events.aclose()
        await asyncio.wait_for(there.closed.wait(), 15)


@pytest.mark.parametrize("is_after_head", [False, True])
async def test_cancelling_closes_the_connection(is_after_head: bool) -> None:
    asked = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        if is_after_head:
            writer.write(STREAM)
        asked.set()
        await reader.read()

    async with peer(answer) as (there, port):
        task = asyncio.create_task(collect(model_at(port), make_request("x")))
        await asked.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait_for(there.closed.wait(), 15)
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(("rest", "is_whole"), [((TEXT, STOP), True), ((TEXT,), False)])
async def test_what_arrived_before_a_break_is_not_lost(rest: tuple[bytes, ...], is_whole: bool) -> None:
    """The end of an answer and the end of its connection may arrive while its reader is busy."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(STREAM + chunked(TEXT, ends=False))
        await reading.wait()
        writer.write(chunked(*rest, ends=False))

    reading, texts, error = asyncio.Event(), [], None
    async with peer(answer) as (there, port):
        try:
            async for event in model_at(port).stream(make_request("x")):
                if isinstance(event, TextDelta):
                    texts.append(event.text)
                reading.set()
                await there.closed.wait()
                await asyncio.sleep(0.05)
        except NetworkLost as lost:
            error = lost
    assert texts == ["hi", "hi"]
    assert (error is None) is is_whole


@pytest.mark.parametrize(
    "head",
    [b"", b"HTTP/1.1 200 OK\r\ncontent-ty", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"],
)
async def test_a_connection_that_brings_no_response_is_lost(head: bytes) -> None:
    async with peer(breaks_after(head)) as (_, port):
        events, error = await collect_until_error(model_at(port), make_request("x"))
    assert not events
    assert isinstance(error, NetworkLost)


async def test_an_address_where_nobody_listens_is_said_to_be_out_of_reach() -> None:
    async with peer(replies()) as (_, port):
        pass
    _, error = await collect_until_error(model_at(port), make_request("x"))
    assert isinstance(error, NetworkLost)
    assert "cannot be reached" in str(error)
    await close_clients()


async def test_a_server_without_tls_is_said_to_be_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "CONNECT_TIMEOUT_SECONDS", 0.5)  # it waits for a request that it can read
    async with peer(breaks_after(b"HTTP/1.1 200 OK\r\n\r\n")) as (_, port):
        _, error = await collect_until_error(model_at(port, scheme="https"), make_request("x"))
    assert isinstance(error, NetworkLost)


@pytest.mark.parametrize("sent", [b"", STREAM, STREAM + chunked(TEXT, ends=False)])
async def test_silence_beyond_the_limit_is_a_stall(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(transport, "READ_TIMEOUT_SECONDS", 0.2)
    async with peer(replies(sent)) as (there, port):
        _, error = await collect_until_error(model_at(port), make_request("x"))
        assert isinstance(error, StreamStalled)
        await asyncio.wait_for(there.closed.wait(), 15)


async def test_an_interim_response_is_not_the_answer() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    async with peer(replies(interim, STREAM + chunked(TEXT, STOP, DONE))) as (_, port):
        assert text_of(await collect(model_at(port), make_request("x"))) == "hi"


async def test_long_and_many_headers_are_taken() -> None:
    more = b"".join(b"x-%d: %s\r\n" % (number, b"v" * 200) for number in range(200))
    head = STREAM[:-2] + b"content-security-policy: " + b"p" * 30_000 + b"\r\n" + more + b"\r\n"
    async with peer(replies(head + chunked(TEXT, STOP, DONE))) as (_, port):
        assert text_of(await collect(model_at(port), make_request("x"))) == "hi"


async def test_an_answer_compressed_without_being_asked_is_read() -> None:
    head = STREAM[:-2] + b"content-encoding: gzip\r\n\r\n"
    async with peer(replies(head + chunked(gzip.compress(TEXT + STOP + DONE)))) as (_, port):
        assert text_of(await collect(model_at(port), make_request("x"))) == "hi"


async def test_it_sends_what_the_client_asked_for_and_nothing_else() -> None:
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\nset-cookie: a=b\r\n\r\n")

    async with peer(answer) as (_, port):
        for connections in (httpx2.AsyncHTTPTransport(), AiohttpTransport(httpx2.create_ssl_context())):
            async with httpx2.AsyncClient(transport=connections) as client:
                url = f"http://127.0.0.1:{port}/v1/a%20b?q=%C3%BC&r=1"
                response = await client.post(url, json={"text": "ü"}, headers={"X-Own": "a", "Accept": "*/*"})
                assert response.status_code == 200
    assert split(seen[0]) == split(seen[1])


def split(request: bytes) -> tuple[bytes, list[bytes], bytes]:
    """First line, headers in any order and spelling of their names, body."""
    head, _, body = request.partition(b"\r\n\r\n")
    first, *headers = head.split(b"\r\n")
    return first, sorted(name.lower() + b":" + value for name, _, value in (h.partition(b":") for h in headers)), body


@pytest.fixture
def proxy_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def use(port: int) -> None:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("NO_PROXY", "")

    return use


async def test_a_proxy_of_the_environment_is_used_for_the_way_out(proxy_of: Callable[[int], None]) -> None:
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await read_request(reader)).partition(b"\r\n")[0])
        writer.write(STREAM + chunked(TEXT, STOP, DONE))

    async with peer(answer) as (_, proxy_port), peer(replies(STREAM + chunked(TEXT, STOP, DONE))) as (here, port):
        proxy_of(proxy_port)
        model = ChatCompletionsModel(Endpoint(provider="far", base_url="http://models.invalid/v1"), "m")
        assert text_of(await collect(model, make_request("x"))) == "hi"
        assert text_of(await collect(model_at(port), make_request("x"))) == "hi"
        assert here.connections == 1
    assert asked == [b"POST http://models.invalid/v1/chat/completions HTTP/1.1"]
