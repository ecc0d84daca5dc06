"""Daphne's HTTP request with a limit for its body, and an answer where a line of its head is too long.

Daphne starts the application after it has received a whole body, so a limit within the application comes too late: by
then the body lies in a temporary file and, piece by piece, in the application's queue. Here a body is refused by its
`Content-Length` or, where it has none, as soon as it is too long. What still arrives is dropped for a few seconds and
then the connection is closed; closing at once would reset it, and the client might never see the answer.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import unquote

from daphne.http_protocol import HTTPFactory, WebRequest
from twisted.internet import reactor

RESPONSE = b"HTTP/1.1 413 Content Too Large\r\n"
HEAD_REFUSED = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 44\r\n\r\nThe head of this request has a line too long"
)

Refusal = Callable[[int], tuple[list[tuple[bytes, bytes]], bytes]]


class BodyPolicy:
    """A server's limits on bodies. `limit_of` takes a path; `refusal` gives headers and body of the 413.

    `smallest` is within the limit of every path: shorter bodies need no look at the path.
    """

    def __init__(
        self, limit_of: Callable[[str], int], refusal: Refusal, *, smallest: int, linger_seconds: float
    ) -> None:
        self.limit_of = limit_of
        self.refusal = refusal
        self.smallest = smallest
        self.linger_seconds = linger_seconds


class BoundedRequest(WebRequest):  # type: ignore[misc]  # daphne has no types
    """One HTTP request whose body is bounded by the `body_policy` of its server."""

    _parsePOSTFormSubmission = False  # noqa: N815 - Twisted would parse forms in memory, and Django does it again
    is_refused = False

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's
        """Headers are complete. Refuse a body by its length before any of it is read."""
        super().gotLength(length)
        policy = self.server.body_policy
        self.body_limit = policy.smallest
        if length is None or length > policy.smallest:
            self.body_limit = policy.limit_of(self._decoded_path())
        self.body_count = 0
        if length is not None and length > self.body_limit:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's
        """Keep a piece of the body, or drop it after a refusal."""
        if self.is_refused:
            return
        self.body_count += len(data)
        if self.body_count > self.body_limit:
            self._refuse()
        else:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802 - Twisted's
        """The whole request is there. A refused one has had its answer."""
        if self.is_refused:
            self.channel.loseConnection()
        else:
            super().requestReceived(command, path, version)

    def _refuse(self) -> None:
        self.is_refused = True
        self.content.close()
        self.requestHeaders.removeHeader(b"Expect")  # else Twisted would ask for the body now
        headers, body = self.server.body_policy.refusal(self.body_limit)
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.channel.transport.write(RESPONSE + lines + b"\r\n" + body)
        reactor.callLater(self.server.body_policy.linger_seconds, _close, self.channel)
        self.server.log_action(
            "http",
            "complete",
            {
                "path": self.channel._path.decode("ascii", "replace"),
                "status": 413,
                "method": self.channel._command.decode("ascii", "replace"),
                "time_taken": 0.0,
                "size": len(body),
            },
        )

    def _decoded_path(self) -> str:
        # The request itself learns its path when the body is complete.
        raw: bytes = self.channel._path
        return unquote(raw.partition(b"?")[0].decode("ascii", "replace")) or "/"


def bind_requests(factory: HTTPFactory, request_class: type[BoundedRequest]) -> None:
    """Make a factory of daphne's produce requests of this class."""

    def build_protocol(address: Any) -> Any:
        protocol = HTTPFactory.buildProtocol(factory, address)
        protocol.requestFactory = request_class
        channel = protocol._channel
        channel.lineLengthExceeded = partial(_refuse_head, channel, factory.server)
        return protocol

    factory.buildProtocol = build_protocol


def _refuse_head(channel: Any, server: Any, _line: bytes) -> None:
    """Answer a request whose query or header is too long, of a socket as well; Twisted would just close."""
    channel.dataReceived = _drop
    channel.transport.write(HEAD_REFUSED)
    reactor.callLater(server.body_policy.linger_seconds, _close, channel)


def _drop(_data: bytes) -> None:
    """Take no notice of what follows a refusal."""


def _close(channel: Any) -> None:
    if channel.transport is not None:
        channel.transport.abortConnection()  # nothing happens where it has been lost
