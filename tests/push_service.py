"""A push service (RFC 8030) on this machine, with the browsers behind it: they open what they get by RFC 8291.

The opening is written from the standards and shares nothing with the product: HMAC for the keys, AES-GCM for the text.
"""

import base64
import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def encoded(data: bytes) -> str:
    """Base64 for addresses, without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decoded(text: str) -> bytes:
    """Bytes of such a text."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class PushedBrowser:
    """A browser that was subscribed. `got`: the texts that it has opened, with the headers they came with."""

    endpoint: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    got: list[tuple[dict[str, Any], dict[str, str]]] = field(default_factory=list)

    @property
    def public(self) -> bytes:
        """Its public key, as a point."""
        return self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def subscription(self, name: str = "Firefox on Linux") -> dict[str, str]:
        """The body that the page sends to the product."""
        keys = {"public_key": encoded(self.public), "auth_secret": encoded(self.auth)}
        return {"name": name, "endpoint": self.endpoint, **keys}

    def opened(self, body: bytes) -> bytes:
        """The text of a push. Errors: `cryptography.exceptions.InvalidTag` for one that is not for this browser."""
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert len(record) <= size
        point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        shared = self.key.exchange(ec.ECDH(), point)
        secret = _expanded(_mac(self.auth, shared), b"WebPush: info\x00" + self.public + sender, 32)
        both = _mac(salt, secret)
        key = _expanded(both, b"Content-Encoding: aes128gcm\x00", 16)
        nonce = _expanded(both, b"Content-Encoding: nonce\x00", 12)
        text = AESGCM(key).decrypt(nonce, record, None)
        assert text.rstrip(b"\x00").endswith(b"\x02")
        return text.rstrip(b"\x00")[:-1]


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


def _expanded(key: bytes, info: bytes, length: int) -> bytes:
    return _mac(key, info + b"\x01")[:length]


class PushService(ThreadingHTTPServer):
    """Takes pushes. `statuses`: answers to the next ones; `gone`: paths of browsers that are not there any more."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _PushHandler)
        self.origin = f"http://127.0.0.1:{self.server_address[1]}"
        self.browsers: dict[str, PushedBrowser] = {}
        self.statuses: list[int] = []
        self.gone: set[str] = set()

    def new_browser(self) -> PushedBrowser:
        """A browser that is subscribed now."""
        path = f"/push/{secrets.token_urlsafe(8)}"
        made = self.browsers[path] = PushedBrowser(endpoint=self.origin + path)
        return made

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        """Judge one push: only one that is signed for this service, and that the browser can open, is taken."""
        if path in self.gone:
            return 410
        if self.statuses:
            return self.statuses.pop(0)
        scheme, _, parameters = headers["authorization"].partition(" ")
        signed = dict(part.strip().split("=", 1) for part in parameters.split(","))
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(signed["k"]))
        claims = jwt.decode(signed["t"], key, algorithms=["ES256"], audience=self.origin)
        is_fit = scheme == "vapid" and claims["sub"].startswith(("mailto:", "https:")) and "ttl" in headers
        if not is_fit or headers["content-encoding"] != "aes128gcm":
            return 400
        browser = self.browsers[path]
        browser.got.append((json.loads(browser.opened(body)), headers))
        return 201


class _PushHandler(BaseHTTPRequestHandler):
    server: PushService

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def push_service() -> Iterator[PushService]:
    """A service for as long as the block."""
    service = PushService()
    threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield service
    finally:
        service.shutdown()
        service.server_close()
