"""The web server process with daphne, with limits of ours (`server.py` starts it).

Ten things differ from `daphne thinkproject.asgi:application`: messages of `THINK_MAX_FRAME_BYTES` are accepted (the
published client sends its whole window each time), `send` waits while a slow socket's buffer is full (daphne would
buffer for ever), a socket is not read further while much of what it sent waits to be handled, close reasons and all
close codes reach the client, peers that give no sign of life are left, a response that fails in its middle is cut,
on SIGTERM clients are asked to reconnect (`graceful_shutdown.py`), bodies of requests are bounded before they are read
(`bounded_requests.py`), a line of a head that is too long is answered there, and the access log holds no query strings
(they may carry a token).
"""

from daphne.server import Server  # isort: skip - installs the reactor, so it comes before anything of Twisted
from daphne.ws_protocol import WebSocketProtocol  # isort: skip

import asyncio
import logging
from collections import deque
from typing import Any

from twisted.internet import defer

from chat.realtime.conf import realtime_settings
from thinkproject.run.bounded_requests import BodyPolicy, BoundedRequest, bind_requests
from thinkproject.run.graceful_shutdown import close_socket, leave, note_kind
from thinkproject.run.servers.shared import (
    CLOSE_SECONDS,
    HEARTBEAT_SECONDS,
    MESSAGE_COST_BYTES,
    OPENING_SECONDS,
    UNREAD_HIGH_BYTES,
    ListenAddress,
    log_request,
    log_socket,
)

BUFFER_HIGH_BYTES = 1024 * 1024
BUFFER_POLL_SECONDS = 0.02

_PROTOCOL = "think.protocol"

logger = logging.getLogger(__name__)


class ThinkSocket(WebSocketProtocol):  # type: ignore[misc]  # daphne has no types
    """Daphne's socket, with a bound on received but unprocessed frames.

    It also sends without the coloured text for a debug log that autobahn makes for every frame.
    """

    def __init__(self) -> None:
        super().__init__()
        self._unread: deque[int] = deque()  # sizes of the messages that the application has not taken
        self._is_paused = False

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: N802, N803 - autobahn's
        """Queue a message for the application; stop reading while it has more than enough to do."""
        super().onMessage(payload, isBinary)
        self._unread.append(len(payload) + MESSAGE_COST_BYTES)
        if not self._is_paused and sum(self._unread) > UNREAD_HIGH_BYTES:
            self._is_paused = True
            self.transport.pauseProducing()

    def taken(self) -> None:
        """Read on once the application has taken a message and little waits."""
        self._unread.popleft()
        if self._is_paused and sum(self._unread) <= UNREAD_HIGH_BYTES:
            self._is_paused = False
            self.transport.resumeProducing()

    def sendData(self, data: bytes, sync: bool = False, chopsize: int | None = None) -> None:  # noqa: N802 - autobahn's
        """Send bytes of a frame."""
        if sync or chopsize or self.send_queue or self.state != self.STATE_OPEN:
            super().sendData(data, sync, chopsize)
        else:
            self.transport.write(data)
            self.trafficStats.outgoingOctetsWireLevel += len(data)


class CutRequest(BoundedRequest):
    """A bounded request that ends when its application fails after the response has begun.

    Daphne tries to begin a second response. That raises inside its reaper of applications, which never runs again, and
    leaves the client waiting.
    """

    def handle_exception(self, exception: BaseException) -> None:
        """Answer with an error page, or cut the connection: an orderly end would make half a body look whole."""
        if self.finished or self.channel is None:
            return
        if self._response_started:
            self.loseConnection()
        else:
            super().handle_exception(exception)


class ThinkServer(Server):  # type: ignore[misc]  # daphne has no types
    """Daphne that lets neither a slow reader nor a large request fill the memory."""

    def __init__(self, application: Any, *, body_policy: BodyPolicy, **options: Any) -> None:
        super().__init__(_reading_on(application), ready_callable=self._tune_protocols, **options)
        self.body_policy = body_policy

    def _tune_protocols(self) -> None:
        bind_requests(self.http_factory, CutRequest)
        # By default a connection that fails is dropped with its data unread, and the reset overtakes the close frame:
        # a client would see 1006 in place of 1009.
        self.ws_factory.protocol = ThinkSocket
        self.ws_factory.setProtocolOptions(failByDrop=False, closeHandshakeTimeout=CLOSE_SECONDS)

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """Start the application; sockets learn whether the browser came over TLS (the Origin rule needs it)."""
        if scope["type"] == "websocket":
            is_secure = getattr(protocol, "client_scheme", None) in {"https", "wss"}
            scope["scheme"] = "wss" if is_secure else "ws"
            scope[_PROTOCOL] = protocol
        return super().create_application(protocol, scope)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Send one ASGI message; return when the transport has room again or the connection has ended.

        A frame for a socket that is being closed goes nowhere, as one for a socket that is gone.
        """
        if message["type"] == "websocket.send" and protocol.state in {protocol.STATE_CLOSING, protocol.STATE_CLOSED}:
            return
        if message["type"] == "websocket.close" and protocol.state == protocol.STATE_OPEN:
            close_socket(protocol, message.get("code") or 1000, message.get("reason") or "")
            return
        if message["type"] == "http.response.start":
            note_kind(protocol, message)
        await super().handle_reply(protocol, message)
        if message["type"] in {"websocket.send", "http.response.body"}:
            await self._room(protocol)

    async def _room(self, protocol: Any) -> None:
        while buffered_bytes(protocol) > BUFFER_HIGH_BYTES:
            details = self.connections.get(protocol)
            if details is None or details.get("disconnected"):
                return
            await asyncio.sleep(BUFFER_POLL_SECONDS)

    def kill_all_applications(self) -> Any:
        """Stop running applications and wait for them, before the reactor stops."""
        return defer.Deferred.fromFuture(asyncio.ensure_future(leave(self))).addErrback(_log_failure)


def _reading_on(application: Any) -> Any:
    """Wrap the application so that a socket learns which of its messages were taken."""

    async def wrapped(scope: dict[str, Any], receive: Any, send: Any) -> None:
        protocol = scope.pop(_PROTOCOL, None)

        async def take() -> Any:
            message = await receive()
            if message["type"] == "websocket.receive":
                protocol.taken()
            return message

        await application(scope, receive if protocol is None else take, send)

    return wrapped


def _log_failure(failure: Any) -> None:
    logger.error("the server ended without leave: %s", failure.getTraceback())


def buffered_bytes(protocol: Any) -> int:
    """Number of sent bytes that the kernel has not taken yet."""
    transport = getattr(protocol, "transport", None)
    if transport is None:  # an HTTP request: its transport belongs to the channel
        transport = getattr(getattr(protocol, "channel", None), "transport", None)
    pending = len(getattr(transport, "dataBuffer", b"")) - getattr(transport, "offset", 0)
    return max(0, pending) + int(getattr(transport, "_tempDataLen", 0))


def log_action(protocol: str, action: str, details: dict[str, Any]) -> None:
    """Write the access log."""
    path = str(details.get("path", ""))
    if protocol == "http" and action == "complete":
        took, size = float(details.get("time_taken") or 0), int(details.get("size") or 0)
        log_request(str(details.get("method")), path, int(details.get("status") or 0), size=size, seconds=took)
    elif protocol == "websocket" and action != "connecting":
        log_socket(action, path)


def server_options(*, behind_proxy: bool = False) -> dict[str, Any]:
    """Return the limits that differ from daphne's own, and which headers of a proxy are believed. Reads settings."""
    return {
        "websocket_max_message_size": realtime_settings.max_frame_bytes,
        "websocket_max_frame_size": realtime_settings.max_frame_bytes,
        "websocket_handshake_timeout": OPENING_SECONDS,
        "ping_interval": HEARTBEAT_SECONDS,
        "ping_timeout": HEARTBEAT_SECONDS,  # not longer than the interval: the next ping would forget the last one's
        "application_close_timeout": 5,
        "server_name": "",
        "proxy_forwarded_address_header": "X-Forwarded-For" if behind_proxy else None,
        "proxy_forwarded_port_header": "X-Forwarded-Port" if behind_proxy else None,
        "proxy_forwarded_proto_header": "X-Forwarded-Proto" if behind_proxy else None,
    }


def endpoint(address: ListenAddress) -> str:
    """Return Twisted's description of where to listen."""
    if address.fd is not None:
        return f"fd:fileno={address.fd}"
    if address.unix_socket:
        return f"unix:{address.unix_socket}"
    host = address.host.strip("[]").replace(":", r"\:")
    return f"tcp:port={address.port}:interface={host}"


def _body_policy() -> BodyPolicy:
    from thinkproject.web import body_limits  # noqa: PLC0415 - after the apps

    return BodyPolicy(
        body_limits.limit_of,
        body_limits.refusal,
        smallest=body_limits.smallest_limit(),
        linger_seconds=body_limits.LINGER_SECONDS,
    )


def create_server(application: Any, address: ListenAddress, *, behind_proxy: bool = False) -> ThinkServer:
    """Create the server of an application with the limits of the settings."""
    return ThinkServer(
        application=application,
        endpoints=[endpoint(address)],
        body_policy=_body_policy(),
        action_logger=log_action,
        **server_options(behind_proxy=behind_proxy),
    )


def serve(application: Any, address: ListenAddress, *, behind_proxy: bool = False) -> int:
    """Serve until a signal ends it. Returns the exit code."""
    server = create_server(application, address, behind_proxy=behind_proxy)
    server.run()
    return 1 if server.abort_start else 0
