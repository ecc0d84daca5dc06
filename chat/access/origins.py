"""The Origin rule of cookie credentials: scheme, host and port must be ours or listed.

Browsers send cookies with a WebSocket handshake from any page, and Django's CSRF protection does not cover sockets.
Ports and schemes count: another server on the same host is another origin. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
_SECURE = {"ws": "http", "wss": "https"}


@dataclass(frozen=True, slots=True)
class Origin:
    """A parsed origin; equal origins are equal values."""

    scheme: str
    host: str
    port: int


def parse_origin(text: str) -> Origin | None:
    """Parse `https://host[:port]`; nothing for `null`, for a path, a query, credentials, or anything malformed."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    plain = parts.path or parts.query or parts.fragment or parts.username is not None or parts.password is not None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or plain:
        return None
    if text != text.strip() or any(character in text for character in "\\@?#\t\r\n "):
        return None
    return Origin(parts.scheme, parts.hostname, _DEFAULT_PORTS[parts.scheme] if port is None else port)


def http_scheme(scheme: str) -> str:
    """The scheme of a page for that of a connection: `ws` counts as `http`."""
    return _SECURE.get(scheme, scheme)


def own_origin(scheme: str, host: str) -> Origin | None:
    """Origin of the server itself, from the scheme of the connection (`ws` counts as `http`) and its Host."""
    return parse_origin(f"{http_scheme(scheme)}://{host}")


def is_allowed(origin: str | None, *, own: Origin | None, listed: Iterable[str]) -> bool:
    """Whether a page of this origin may use a cookie credential. A missing origin is refused."""
    parsed = parse_origin(origin) if origin else None
    if parsed is None:
        return False
    return parsed == own or is_listed(parsed, listed)


def is_listed(origin: Origin, listed: Iterable[str]) -> bool:
    """Whether the origin is one of the configured ones."""
    return any(parse_origin(entry) == origin for entry in listed)
