"""Code of both web servers: where they listen, the limits of sockets, and the access log."""

import logging
from dataclasses import dataclass

CLOSE_SECONDS = 5
"""How long a closing socket may take to answer the close frame."""
OPENING_SECONDS = 20
"""How long a socket may take to open on a server that is busy (autobahn's 5 would drop it)."""
HEARTBEAT_SECONDS = 20
"""After so long a silence a socket is pinged, and has as long to answer: dead peers go, proxies keep idle ones."""
UNREAD_HIGH_BYTES = 1024 * 1024
"""A socket is not read further while so much of what it sent waits to be handled."""
MESSAGE_COST_BYTES = 256
"""What a waiting message takes beyond its text, so that many short ones count as well."""

access_logger = logging.getLogger("think.access")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenAddress:
    """An address to listen on: an inherited listening socket, a unix socket, or a port."""

    host: str = "127.0.0.1"
    port: int = 8000
    unix_socket: str | None = None
    fd: int | None = None


def log_request(method: str, path: str, status: int, *, size: int, seconds: float) -> None:
    """Write a line of the access log. Queries may carry a token and are left out."""
    access_logger.info("%s %s %d %d bytes %.0f ms", method, path.partition("?")[0], status, size, seconds * 1000)


def log_socket(action: str, path: str) -> None:
    """Write a line about a WebSocket: "connected", "disconnected", "rejected"."""
    access_logger.info("websocket %s %s", action, path.partition("?")[0])
