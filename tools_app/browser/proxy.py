"""The only way of a browser to the network: a proxy within the worker, one for each browser.

Every request passes here, whatever makes it: pages, frames, scripts, pictures, workers, web sockets, redirects. Its
host must be on the allow-list, its addresses are resolved here and checked, and so is the other end of the connection
(`tools_app/fetching`). What comes back is counted. Who asks must know the browser's own credential.
"""

import asyncio
import base64
import contextlib
import hmac
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from yarl import URL

from tools_app.fetching.addresses import Network
from tools_app.fetching.connecting import PinnedConnector, open_checked
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.resolving import Resolve, checked_addresses, resolve
from tools_app.fetching.urls import AllowRule, check_allowed, checked_url

LOGIN_URL: Final = "http://login.think.invalid/"
"""Answered by the proxy itself, so that a browser can present its credential before anything else."""

USER: Final = "browser"
HEAD_BYTES: Final = 64 * 1024
HEAD_SECONDS: Final = 20.0
CONNECT_SECONDS: Final = 10.0
BODY_BYTES: Final = 10_000_000
PIECE_BYTES: Final = 64 * 1024
MAX_CONNECTIONS: Final = 128
MAX_REFUSED: Final = 50
_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NOT_SENT: Final = _HOP_BY_HOP | {"content-length"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPolicy:
    """The addresses that a browser may reach. `max_bytes`: sent and received in its whole life."""

    rules: tuple[AllowRule, ...]
    private: Sequence[Network] = ()
    resolver: Resolve = resolve
    max_bytes: int = 100_000_000

    def check_url(self, text: str) -> URL:
        """Parse a URL that may be loaded. Errors: `FetchFailed` (`disallowed_url`)."""
        url = checked_url(text)
        check_allowed(url, self.rules)
        return url

    def check_authority(self, text: str) -> URL:
        """Parse `host:port` of a tunnel, through which go https and web sockets. Errors: `FetchFailed`."""
        url = checked_url(f"https://{text}/")
        plain = URL.build(scheme="http", host=url.raw_host or "", port=url.port, path="/", encoded=True)
        if not any(rule.allows(each) for rule in self.rules for each in (url, plain)):
            raise FetchFailed("disallowed_url", f"The host is not on the list of those that may be reached: {text}")
        return url


class _Exhausted(Exception):
    """The bytes of the browser are used up."""


@dataclass(eq=False)
class Proxy:
    """The proxy of one browser. `refused`: what it did not let through, by address, with the reason.

    `has_login`: whether the browser has presented its credential. `on_exhausted`: called when all bytes are used up.
    """

    policy: NetworkPolicy
    password: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    refused: dict[str, str] = field(default_factory=dict)
    used_bytes: int = 0
    has_login: bool = False
    on_exhausted: "Callable[[], None] | None" = None
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _server: asyncio.Server | None = None

    @property
    def is_exhausted(self) -> bool:
        """Whether it lets nothing more through."""
        return self.used_bytes >= self.policy.max_bytes

    @property
    def credential(self) -> str:
        """User and password as they are in a header."""
        return base64.b64encode(f"{USER}:{self.password}".encode()).decode()

    async def serve(self, listener: socket.socket) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._accepted, sock=listener, limit=HEAD_BYTES)

    async def close(self) -> None:
        """End it with all connections. Safe to call again."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if len(self._tasks) <= MAX_CONNECTIONS and not self.is_exhausted:
                await self._answer(reader, writer)
        except (OSError, ValueError, _Exhausted, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whatever breaks a connection is seen by the browser as one that broke
        except asyncio.CancelledError:
            pass  # the proxy closes
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_SECONDS):
            request = _Request.read(await reader.readuntil(b"\r\n\r\n"))
        if not self._knows(request.header("proxy-authorization")):
            writer.write(
                b'HTTP/1.1 407 Credential needed\r\nProxy-Authenticate: Basic realm="think"\r\n'
                b"Content-Length: 0\r\nConnection: close\r\n\r\n"
            )
            await writer.drain()
        elif request.target == LOGIN_URL:
            self.has_login = True
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
            )
            await writer.drain()
        else:
            try:
                await self._pass_on(request, reader, writer)
            except FetchFailed as error:
                if error.reason == "disallowed_url" and len(self.refused) < MAX_REFUSED:
                    self.refused[_address(request)] = error.message

    def _knows(self, header: str) -> bool:
        return hmac.compare_digest(header.encode(errors="replace"), f"Basic {self.credential}".encode())

    async def _pass_on(self, request: "_Request", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Errors: `FetchFailed`."""
        if request.method == "CONNECT":
            url = self.policy.check_authority(request.target)
            await self._tunnel(url, reader, writer)
        else:
            await self._forward(self.policy.check_url(request.target), request, reader, writer)

    async def _tunnel(self, url: URL, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await open_checked(url, self.policy.resolver, self.policy.private, seconds=CONNECT_SECONDS)
        with contextlib.closing(there[1]):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            ways = [asyncio.create_task(self._relay(*way)) for way in ((reader, there[1]), (there[0], writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE_BYTES):
            self._count(len(piece))
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    async def _forward(
        self, url: URL, request: "_Request", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One request and its answer; the connection ends with it."""
        body = await self._body(request, reader)
        addresses = await checked_addresses(url, self.policy.resolver, self.policy.private)
        headers = [(name, value) for name, value in request.headers if name.lower() not in _NOT_SENT]
        try:
            async with (
                aiohttp.ClientSession(
                    connector=PinnedConnector(addresses),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    auto_decompress=False,
                    trust_env=False,
                    skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                ) as session,
                session.request(request.method, url, headers=headers, data=body, allow_redirects=False) as answer,
            ):
                writer.write(_head(answer))
                async for piece in answer.content.iter_any():
                    self._count(len(piece))
                    writer.write(piece)
                    await writer.drain()
        except aiohttp.ClientError as error:
            raise FetchFailed("request_failed", f"The request failed: {type(error).__name__}") from error

    async def _body(self, request: "_Request", reader: asyncio.StreamReader) -> bytes | None:
        """The body of a request. Errors: `FetchFailed` for one whose length is not said, or that is too large."""
        length = request.header("content-length") or "0"
        if request.header("transfer-encoding") or not length.isascii() or not length.isdigit():
            raise FetchFailed("request_failed", "The length of the request is not known.")
        if int(length) > BODY_BYTES:
            raise FetchFailed("too_large", f"A request has at most {BODY_BYTES} bytes.")
        self._count(int(length))
        return await reader.readexactly(int(length)) if int(length) else None

    def _count(self, size: int) -> None:
        self.used_bytes += size
        if self.is_exhausted:
            if self.on_exhausted is not None:
                self.on_exhausted()
            raise _Exhausted


@dataclass(frozen=True, slots=True)
class _Request:
    """The head of a request, as the browser wrote it."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, data: bytes) -> "_Request":
        """Errors: `ValueError`."""
        first, *lines = data.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        method, target, _version = first.split(" ")
        headers = []
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise ValueError("no header")
            headers.append((name, value.strip()))
        return cls(method, target, tuple(headers))

    def header(self, name: str) -> str:
        """The first value of a header; empty where there is none."""
        return next((value for each, value in self.headers if each.lower() == name), "")


def _head(answer: aiohttp.ClientResponse) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {answer.reason or ''}".encode("latin-1", "replace"), b"Connection: close"]
    lines += [
        name + b": " + value for name, value in answer.raw_headers if name.decode("latin-1").lower() not in _HOP_BY_HOP
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _address(request: _Request) -> str:
    """The address of a request, for people."""
    return request.target.partition("?")[0][:200]
