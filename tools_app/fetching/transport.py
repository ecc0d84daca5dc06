"""An `httpx2` transport beneath clients of protocols, which reaches only addresses that a fetch may reach.

Each request resolves, checks and connects anew, as `Fetcher` does, so a name that changes its mind changes nothing.
Redirects are not followed here: the target of one is a new request, checked like the first address.
"""

import contextlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Final

import aiohttp
import httpx2
from yarl import URL

from tools_app.fetching.addresses import Network, parse_address
from tools_app.fetching.connecting import PinnedConnector
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.resolving import Resolve, checked_addresses, resolve
from tools_app.fetching.urls import checked_url

_OWN_HEADERS: Final = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_CONNECTION: Final = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding"})
STREAM: Final = "text/event-stream"


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends requests to public addresses by `https`, and to `private` networks by `http` as well.

    `max_bytes`: of a response that is no stream of events. `last_refusal`: why a request was refused, if one was.
    """

    def __init__(self, *, private: Sequence[Network] = (), max_bytes: int, resolver: Resolve = resolve) -> None:
        self.last_refusal = ""
        self._private = private
        self._max_bytes = max_bytes
        self._resolver = resolver

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request. Errors: `httpx2.TransportError`; `ConnectError` also for an address that is refused."""
        try:
            url = checked_url(str(request.url))
            addresses = await checked_addresses(url, self._resolver, self._private)
            if url.scheme != "https" and not all(_is_in(str(each), self._private) for each in addresses):
                raise FetchFailed("disallowed_url", "Only https URLs can be reached here.", url=str(url))
        except FetchFailed as error:
            self.last_refusal = error.message
            raise httpx2.ConnectError(error.message, request=request) from error
        session = aiohttp.ClientSession(
            connector=PinnedConnector(addresses),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            skip_auto_headers=_OWN_HEADERS,
        )
        try:
            return await self._send(session, url, request)
        except BaseException:
            await session.close()
            raise

    async def _send(self, session: aiohttp.ClientSession, url: URL, request: httpx2.Request) -> httpx2.Response:
        limits = request.extensions.get("timeout", {})
        headers = [(name, value) for name, value in request.headers.multi_items() if name.lower() not in _CONNECTION]
        with _errors_of(request):
            response = await session.request(
                request.method,
                url,
                headers=headers,
                data=await request.aread() or None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=limits.get("connect"), sock_read=limits.get("read")
                ),
            )
        is_stream = response.content_type == STREAM
        return httpx2.Response(
            response.status,
            headers=[pair for pair in response.raw_headers if pair[0].lower() != b"content-encoding"],
            stream=_Body(session, response, request, None if is_stream else self._max_bytes),
            request=request,
        )


class _Body(httpx2.AsyncByteStream):
    """The body of a response, decompressed, up to a number of bytes. Closing it closes the connection."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        response: aiohttp.ClientResponse,
        request: httpx2.Request,
        most: int | None,
    ) -> None:
        self._session = session
        self._response = response
        self._request = request
        self._most = most

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        count = 0
        with _errors_of(self._request):
            async for data in self._response.content.iter_any():
                count += len(data)
                if self._most is not None and count > self._most:
                    raise httpx2.ReadError(f"The answer is larger than {self._most} bytes.", request=self._request)
                yield data

    async def aclose(self) -> None:
        """Close the connection."""
        self._response.close()
        await self._session.close()


@contextlib.contextmanager
def _errors_of(request: httpx2.Request) -> Iterator[None]:
    """Raise errors of aiohttp and of the check of the other end as those of httpx2."""
    try:
        yield
    except TimeoutError as error:
        raise httpx2.ReadTimeout("There was no answer in time.", request=request) from error
    except FetchFailed as error:
        raise httpx2.ConnectError(error.message, request=request) from error
    except aiohttp.ClientConnectionError as error:
        raise httpx2.ConnectError(f"The connection failed: {type(error).__name__}", request=request) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise httpx2.ReadError(f"The request failed: {type(error).__name__}", request=request) from error


def _is_in(text: str, networks: Sequence[Network]) -> bool:
    address = parse_address(text)
    return address is not None and any(address in network for network in networks)
