"""Compression of pages and JSON under ASGI, but for requests that another site may have caused.

An attacker who makes a browser send requests, gets text of his own into the answers and sees their compressed length
on the network can guess secrets in them (BREACH). So an answer is compressed only if the browser says that its own
page or the person asked (`Sec-Fetch-Site: same-origin` or `none`, which no page can set), or if the request has an
`Authorization` header, which browsers never add by themselves. Any other answer is sent as it is.

Streams, files and answers of unknown length are not touched: events have to leave at once.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import brotli

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

TYPES = frozenset({b"text/html", b"application/json", b"application/problem+json"})
LEAST_BYTES = 1024
MOST_BYTES = 4 * 1024 * 1024
"""Longer answers are not held in memory to be compressed."""
THREAD_BYTES = 32 * 1024
"""From here on a thread compresses: it takes more than a millisecond."""
_BROTLI_QUALITY = 4
_GZIP_LEVEL = 5
_OWN = frozenset({b"same-origin", b"none"})
_LEFT_ALONE = frozenset({b"content-encoding", b"content-range", b"accept-ranges", b"content-disposition", b"etag"})


class Compression:
    """Compresses answers of an application, with Brotli where the client takes it, else gzip."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        encoding = chosen_encoding(scope["headers"]) if scope["method"] != "HEAD" else None
        answer = _Answer(send, encoding)
        await self.application(scope, receive, answer.send)


def chosen_encoding(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The encoding of the answer to a request: `br`, `gzip`, or nothing where it must not be compressed."""
    fields = dict(headers)
    if b"authorization" not in fields and fields.get(b"sec-fetch-site") not in _OWN:
        return None
    accepted = {name for name, quality in _accepted(fields.get(b"accept-encoding", b"")) if quality > 0}
    return "br" if "br" in accepted else "gzip" if "gzip" in accepted else None


def compress(body: bytes, encoding: str) -> bytes:
    """Compress a body."""
    if encoding == "br":
        return bytes(brotli.compress(body, quality=_BROTLI_QUALITY))
    compressor = zlib.compressobj(_GZIP_LEVEL, wbits=16 + zlib.MAX_WBITS)
    return compressor.compress(body) + compressor.flush()


class _Answer:
    """The way of one answer to the client: held until it is complete if it will be compressed, else passed on."""

    def __init__(self, send: Send, encoding: str | None) -> None:
        self._send = send
        self._encoding = encoding
        self._start: Message | None = None
        self._body: list[bytes] = []

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body.append(message.get("body", b""))
            if not message.get("more_body", False):
                await self._finish(self._start, b"".join(self._body))
        else:
            await self._send(message)

    async def _begin(self, message: Message) -> None:
        headers: Headers = list(message["headers"])
        if not _may_be_compressed(dict(headers)):
            await self._send(message)
            return
        message = {**message, "headers": _varying(headers)}
        if self._encoding is None:
            await self._send(message)
        else:
            self._start = message

    async def _finish(self, start: Message, body: bytes) -> None:
        assert self._encoding is not None
        if len(body) < THREAD_BYTES:
            body = compress(body, self._encoding)
        else:
            body = await asyncio.to_thread(compress, body, self._encoding)
        headers = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
        headers += [(b"content-encoding", self._encoding.encode()), (b"content-length", str(len(body)).encode())]
        await self._send({**start, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def _may_be_compressed(headers: Mapping[bytes, bytes]) -> bool:
    fields = {name.lower(): value for name, value in headers.items()}
    length = fields.get(b"content-length", b"")
    return (
        length.isdigit()
        and LEAST_BYTES <= int(length) <= MOST_BYTES
        and fields.get(b"content-type", b"").partition(b";")[0].strip() in TYPES
        and not _LEFT_ALONE & fields.keys()
    )


def _varying(headers: Headers) -> Headers:
    before = [value for name, value in headers if name.lower() == b"vary"]
    kept = [(name, value) for name, value in headers if name.lower() != b"vary"]
    return [*kept, (b"vary", b", ".join([*before, b"Accept-Encoding"]))]


def _accepted(header: bytes) -> list[tuple[str, float]]:
    found = []
    for item in header.decode("latin1").lower().split(","):
        name, _, parameter = item.partition(";")
        quality = parameter.strip().removeprefix("q=") if parameter else "1"
        found.append((name.strip(), float(quality) if quality.replace(".", "", 1).isdigit() else 0.0))
    return found
