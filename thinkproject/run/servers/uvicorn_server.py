"""The web server process with uvicorn, with limits of ours (`server.py` starts it).

Eleven things differ from `uvicorn thinkproject.asgi:application`: messages of `THINK_MAX_FRAME_BYTES` are accepted and
a longer one is refused so that its sender learns of it, a socket is not read further while much of what it sent waits
to be handled, a frame for a socket that closes goes nowhere instead of raising, frames are not compressed (which takes
more time and memory than it saves on a stream of small ones), a peer that does not answer pings is left although it
has not read what was sent, an application whose socket has gone is ended after a while, the head of a request is
bounded (uvicorn keeps all of it), a handshake that cannot be read is answered (uvicorn keeps its peer waiting), event
streams end on SIGTERM instead of being cut, reasons of closes are cut to what a frame can hold, and the access log
holds no query strings (they may carry a token). Bodies of requests are bounded by `thinkproject.web.body_limits`.
"""

import asyncio
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import Server

from chat.realtime.conf import realtime_settings
from thinkproject.run.graceful_shutdown import GRACE_SECONDS, is_event_stream
from thinkproject.run.servers.shared import HEARTBEAT_SECONDS, ListenAddress, log_request
from thinkproject.run.servers.uvicorn_sockets import ThinkSocket

HEAD_MAX_BYTES = 64 * 1024
"""The head of a request: its first line and its headers."""
KEEP_ALIVE_SECONDS = 75
"""How long an idle connection stays: longer than a proxy keeps one, so that none is closed in a proxy's face."""

logger = logging.getLogger(__name__)

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[Any]]
_Send = Callable[[Any], Awaitable[None]]
_Application = Callable[[Any, _Receive, _Send], Awaitable[None]]


class BoundedHead(HttpToolsProtocol):
    """Uvicorn's HTTP protocol with a bound on the head of a request, of which it would keep any length."""

    _head_bytes = 0
    _is_in_head = False

    def data_received(self, data: bytes) -> None:
        """Parse; refuse a head that does not end."""
        was_in_head = self._is_in_head
        super().data_received(data)
        if was_in_head and self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_MAX_BYTES and not self.transport.is_closing():
                self.send_400_response("The head of this request is too large.")

    def on_message_begin(self) -> None:
        """A request begins."""
        self._head_bytes = 0
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is complete. Errors: `ValueError`, answered with 400, when it is too large."""
        self._is_in_head = False
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD_MAX_BYTES:
            raise ValueError("the head of this request is too large")
        super().on_headers_complete()


class Requests:
    """The application with an access log for its requests, and an end for its event streams when the server leaves."""

    def __init__(self, application: _Application) -> None:
        self.application = application
        self.is_leaving = False
        self._streams: set[asyncio.Task[Any]] = set()

    def leave(self) -> None:
        """End the event streams, which have no end of their own. Readers go on elsewhere by `Last-Event-ID`."""
        self.is_leaving = True
        for task in self._streams:
            task.cancel()

    async def __call__(self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send) -> None:
        """Serve a request or a socket."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
            return
        try:
            await self.application(scope, receive, send)
        except asyncio.CancelledError:
            logger.warning("the application of a socket that has ended was cancelled: %s", scope["path"])

    async def _serve(self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send) -> None:
        begun = asyncio.get_running_loop().time()
        task = asyncio.current_task()
        assert task is not None
        status = size = 0
        has_left = False

        async def noted(message: _Message) -> None:
            nonlocal status, size
            if has_left:  # what the application still says goes nowhere
                return
            if message["type"] == "http.response.start":
                status = message["status"]
                if is_event_stream(message):
                    self._streams.add(task)
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.application(scope, receive, noted)
        except asyncio.CancelledError:
            if not self.is_leaving or task not in self._streams:
                raise
            has_left = True
            task.uncancel()
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._streams.discard(task)
            seconds = asyncio.get_running_loop().time() - begun
            log_request(scope["method"], scope["path"], status, size=size, seconds=seconds)


class ThinkUvicorn(Server):
    """Uvicorn that ends event streams before it waits for what is at work."""

    def __init__(self, config: Config, requests: Requests) -> None:
        super().__init__(config)
        self.requests = requests

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Leave: sockets are asked to reconnect, and requests get a moment to be answered."""
        self.requests.leave()
        await super().shutdown(sockets)


def create_server(application: Any, *, behind_proxy: bool = False, **options: Any) -> ThinkUvicorn:
    """Create the server of an application with the limits of the settings; `options` are of uvicorn's `Config`."""
    requests = Requests(application)
    limits: dict[str, Any] = {
        "http": BoundedHead,
        "ws": ThinkSocket,
        "ws_max_size": realtime_settings.max_frame_bytes,
        "ws_ping_interval": HEARTBEAT_SECONDS,
        "ws_ping_timeout": HEARTBEAT_SECONDS,
        "ws_per_message_deflate": False,
        "lifespan": "off",
        "log_config": None,  # what Django has configured
        "access_log": False,  # ours has no queries
        "server_header": False,
        "proxy_headers": behind_proxy,
        "forwarded_allow_ips": "*",  # who can reach this process is the proxy
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": int(GRACE_SECONDS),
        **options,
    }
    return ThinkUvicorn(Config(requests, **limits), requests)


def run_server(server: ThinkUvicorn, address: ListenAddress) -> int:
    """Serve until a signal ends it. Returns the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again when it has ended: that is no failure
        signal.signal(number, server.handle_exit)
    config = server.config
    if address.fd is not None:
        server.run(sockets=[socket.socket(fileno=address.fd)])
    else:
        config.host, config.port, config.uds = address.host.strip("[]"), address.port, address.unix_socket
        server.run()
    return 0 if server.started else 1


def serve(application: Any, address: ListenAddress, *, behind_proxy: bool = False) -> int:
    """Serve an application until a signal ends it. Returns the exit code."""
    return run_server(create_server(application, behind_proxy=behind_proxy), address)
