"""The way of bytes beneath the `openai` client: an `httpx2` transport over aiohttp's connections.

Reading a token costs half of what it costs over httpx2's own connections (`docs/design/models.md`, cost). It serves
direct connections; what the environment sends through a proxy stays with httpx2, which knows every kind of proxy.
What goes wrong is raised as httpx2's errors, so nothing above knows the difference.
"""

import contextlib
import ssl
from collections.abc import AsyncGenerator, Iterator
from typing import Final

import aiohttp
import httpx2
from yarl import URL

KEEPALIVE_SECONDS: Final = 5.0
MAX_LINE_BYTES: Final = 64 * 1024
MAX_HEADERS: Final = 1_000

# Nothing is sent that the client did not ask for.
_OWN_HEADERS: Final = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """Connections of one client, kept for the next request. For the loop in which it is made."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=context, keepalive_timeout=KEEPALIVE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_OWN_HEADERS,
            max_line_size=MAX_LINE_BYTES,
            max_field_size=MAX_LINE_BYTES,
            max_headers=MAX_HEADERS,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return once the head of the response is there; a cancel closes the connection."""
        limits = request.extensions.get("timeout", {})
        with _errors_of(request):
            response = await self._session.request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=request.headers.multi_items(),
                data=await request.aread() or None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=limits.get("connect"), sock_read=limits.get("read")
                ),
                server_hostname=request.extensions.get("sni_hostname"),
            )
        return httpx2.Response(
            response.status,
            headers=list(response.raw_headers),
            stream=_Body(response, request),
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": (response.reason or "").encode()},
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._session.close()


class _Body(httpx2.AsyncByteStream):
    """The body of a response: all that has arrived, at each step."""

    def __init__(self, response: aiohttp.ClientResponse, request: httpx2.Request) -> None:
        self._response = response
        self._request = request

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        content = self._response.content
        with _errors_of(self._request):
            try:
                while data := await content.readany():
                    yield data
            except aiohttp.ClientError:
                # The reader raises before it gives what arrived earlier: the end of an answer may be in it.
                if rest := b"".join(content._buffer):
                    yield rest
                raise

    async def aclose(self) -> None:
        """Leave the connection for the next request if the body was read to its end; else close it."""
        self._response.close()


@contextlib.contextmanager
def _errors_of(request: httpx2.Request) -> Iterator[None]:
    """Raise aiohttp's errors as those of httpx2."""
    try:
        yield
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
        raise _translated(error)(str(error), request=request) from error


def _translated(error: Exception) -> type[httpx2.RequestError]:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return httpx2.ConnectTimeout
        case TimeoutError():
            return httpx2.ReadTimeout
        case aiohttp.ClientConnectorError() | aiohttp.ServerFingerprintMismatch():
            return httpx2.ConnectError
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return httpx2.UnsupportedProtocol
        case aiohttp.ClientPayloadError() | aiohttp.ClientResponseError() | aiohttp.ServerDisconnectedError():
            return httpx2.RemoteProtocolError
        case ValueError():
            return httpx2.LocalProtocolError
        case _:
            return httpx2.ReadError
