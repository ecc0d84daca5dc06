"""The HTTP side that adapters share: one client per loop and address, and SSE events from a response as they arrive.

The `openai` client does authentication and errors; its own retries are off, because retrying is a policy of ours
(`chat.llm.wrappers`), and its pydantic objects are left aside: building them costs more than all the rest. Its
connections are aiohttp's (`aiohttp_transport`), or `httpx2`'s own where the environment names a proxy.
"""

import asyncio
import contextlib
import functools
import ssl
import weakref
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable
from dataclasses import dataclass
from typing import Any, Final, cast

import httpx2
import msgspec
import openai

from chat.llm.adapters.aiohttp_transport import AiohttpTransport
from chat.llm.adapters.sse import BOM, MAX_EVENT_BYTES, SSEDecoder, SSEEvent, SSEOverflow
from chat.llm.endpoint import Endpoint, is_loopback
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

CONNECT_TIMEOUT_SECONDS: Final = 10.0
READ_TIMEOUT_SECONDS: Final = 600.0
DRAIN_SECONDS: Final = 0.1
DONE: Final = b"[DONE]"
KEPT_CLIENTS: Final = 32
_encode: Final = msgspec.json.Encoder().encode
_OF_MESSAGES: Final = frozenset({"messages", "input"})
_NO_EVENTS: Final = (b"{", b"[", b"<")  # the first bytes of a body in one piece: an answer, a list of errors, a page

# What a call through the client or a read from its response may raise.
TRANSPORT_ERRORS: Final = (openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL)


@dataclass(slots=True)
class _Shared:
    client: openai.AsyncOpenAI
    users: int = 0


# The least recently used one first.
_clients: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, OrderedDict[tuple[str, str], _Shared]]" = (
    weakref.WeakKeyDictionary()
)


@contextlib.asynccontextmanager
async def client_of(endpoint: Endpoint) -> AsyncGenerator[openai.AsyncOpenAI, None]:
    """Use the running loop's client for this address and key; connections are kept and shared between turns.

    Of the unused ones, the `KEPT_CLIENTS` most recently used stay open.
    """
    clients = _clients.setdefault(asyncio.get_running_loop(), OrderedDict())
    key = (endpoint.base_url, endpoint.api_key)
    shared = clients.get(key)
    if shared is None:
        shared = clients[key] = _Shared(_new_client(endpoint))
    clients.move_to_end(key)
    shared.users += 1
    try:
        yield shared.client
    finally:
        shared.users -= 1
        await _close_unused(clients)


@contextlib.asynccontextmanager
async def posted(
    endpoint: Endpoint, path: str, body: JSONObject, headers: dict[str, str]
) -> AsyncGenerator[httpx2.Response, None]:
    """Send a body to a path of the endpoint, and read the answer in the block. Errors: the client's.

    The client's methods for it walk over the type of each message, and encode with Python's own encoder.
    """
    async with client_of(endpoint) as client:
        posting: Awaitable[Any] = client.post(
            path,
            cast_to=httpx2.Response,
            content=encoded(body),
            options={"headers": headers, "security": {"bearer_auth": True}},
            stream=True,
            stream_cls=openai.AsyncStream[Any],
        )
        response: httpx2.Response = await posting
        try:
            yield response
        finally:
            await response.aclose()


def encoded(body: JSONObject) -> bytes:
    """A body as it is sent. Errors: `ValueError` for numbers that JSON does not have."""
    fields = (dump(key).encode() + b":" + _encoded(key, value) for key, value in body.items())
    return b"{" + b",".join(fields) + b"}"


def _encoded(key: str, value: JSONValue) -> bytes:
    """A field's value. Messages, which come of JSON, are encoded ten times as fast."""
    if key in _OF_MESSAGES:
        with contextlib.suppress(msgspec.MsgspecError, UnicodeError, OverflowError, RecursionError):
            return _encode(value)
    return dump(value).encode()


async def _close_unused(clients: "OrderedDict[tuple[str, str], _Shared]") -> None:
    surplus = len(clients) - KEPT_CLIENTS
    idle = [key for key, shared in clients.items() if not shared.users] if surplus > 0 else []
    closing = [clients.pop(key) for key in idle[: max(0, surplus)]]
    for shared in closing:
        await shared.client.close()


class _HttpClient(openai.DefaultAsyncHttpxClient):
    """The usual HTTP client, whose direct connections are aiohttp's. For the loop in which it is made."""

    def _init_transport(  # type: ignore[override]  # the base names each option; one of them matters here
        self, **options: Any
    ) -> httpx2.AsyncBaseTransport:
        return AiohttpTransport(_ssl_context(options.get("trust_env", True)))


def _new_client(endpoint: Endpoint) -> openai.AsyncOpenAI:
    timeout = openai.Timeout(READ_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
    return openai.AsyncOpenAI(
        base_url=endpoint.base_url,
        api_key=endpoint.api_key or "not-needed",
        max_retries=0,
        timeout=timeout,
        # A proxy of the environment is for the way out, not for a server on this machine.
        http_client=_HttpClient(timeout=timeout, trust_env=not is_loopback(endpoint.base_url)),
    )


@functools.cache
def _ssl_context(trust_env: bool) -> ssl.SSLContext:
    """The context of all clients: reading the certificates takes longer than the rest of a client."""
    return httpx2.create_ssl_context(trust_env=trust_env)


async def close_clients() -> None:
    """Close the running loop's connections (a worker's shutdown, the end of a test)."""
    for shared in _clients.pop(asyncio.get_running_loop(), OrderedDict()).values():
        await shared.client.close()


async def sse_batches(response: httpx2.Response) -> AsyncGenerator[list[SSEEvent], None]:
    """Yield the events of each network read together, and at the end an event without its closing blank line.

    Errors: `SSEOverflow`; what the client raises. Closing the generator closes the connection's iterator.
    """
    decoder = SSEDecoder(MAX_EVENT_BYTES)
    async with contextlib.aclosing(_pieces(response)) as source:
        first = await _beginning(source)
        if first.startswith(_NO_EVENTS):
            yield [SSEEvent(b"", await _whole(first, source))]
            return
        events = decoder.feed(first)
        if events:
            yield events
        async for data in source:
            events = decoder.feed(data)
            if events:
                yield events
    # A connection that was cut leaves half an event, which is not one.
    rest = [event for event in decoder.flush() if event.data.rstrip().endswith((DONE, b"}"))]
    if rest:
        yield rest


def _pieces(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """The body as it arrives. What is not encoded, as we ask for, comes without the client's layers for that."""
    if "content-encoding" in response.headers:
        return response.aiter_bytes()
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    return cast("AsyncGenerator[bytes, None]", response.stream.__aiter__())


async def _beginning(source: AsyncGenerator[bytes, None]) -> bytes:
    """The bytes up to the first that is no white space. Media types do not say whether a server streams: this does."""
    data = b""
    while not data:
        try:
            data = (await anext(source)).removeprefix(BOM).lstrip()
        except StopAsyncIteration:
            break
    return data


async def _whole(first: bytes, source: AsyncGenerator[bytes, None]) -> bytes:
    """The body of a server that does not stream and answers in one piece."""
    body = bytearray(first)
    async for data in source:
        body += data
        if len(body) > MAX_EVENT_BYTES:
            raise SSEOverflow("an answer of more than the limit")
    return bytes(body)


async def drain(batches: AsyncGenerator[list[SSEEvent], None]) -> None:
    """Read a finished response to its end, so that the connection can be used again; give up after a moment."""
    with contextlib.suppress(TimeoutError, SSEOverflow, *TRANSPORT_ERRORS):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in batches:
                pass
