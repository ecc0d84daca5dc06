"""A server of the webhook draft of Durable Streams: consumers that are woken, and callbacks with tokens that rotate.

Over real HTTP. It takes no token twice, claims a wake once, and never lets a position go back.
"""

import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "shared"


class WakeServer(ThreadingHTTPServer):
    """One consumer and its present wake."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.origin = f"http://127.0.0.1:{self.server_address[1]}"
        self.lock = threading.Lock()
        self.epoch, self.state, self.token, self.wake_id = 0, "idle", "", ""
        self.acks: dict[str, str] = {}
        self.got: list[dict[str, Any]] = []  # bodies that were accepted
        self.refusals: list[str] = []
        self.expires = self.fails = 0  # so many of the next callbacks get a new token only, or a 503
        self.is_gone = False
        self.lets_answer = threading.Event()  # cleared: what was accepted is answered once it is set
        self.lets_answer.set()

    def wake(self, **more: Any) -> dict[str, Any]:
        """Begin a wake; gives what is posted to the consumer."""
        with self.lock:
            self.begin()
            streams = more.pop("streams", [{"path": "log", "offset": "-1"}, {"path": "mail", "offset": "-1"}])
            return {
                "consumer_id": "mirror",
                "epoch": self.epoch,
                "wake_id": self.wake_id,
                "callback": f"{self.origin}/callback",
                "token": self.token,
                "streams": streams,
                **more,
            }

    def begin(self) -> None:
        """A new epoch: callbacks of the one before are stale."""
        self.epoch += 1
        self.wake_id, self.token, self.state = secrets.token_hex(4), secrets.token_hex(8), "waking"

    def answer(self, token: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Judge a callback."""
        code, status = self._refusal(token, body)
        if code:
            self.refusals.append(code)
            error = {"error": {"code": code}}
            return status, {**error, "token": self.token} if code == "TOKEN_EXPIRED" else error
        self.got.append(body)
        self.state = "live"
        for ack in body.get("acks", ()):
            self.acks[ack["path"]] = ack["offset"]
        self.token = secrets.token_hex(8)
        if body.get("done") is True:
            self.state = "idle"
        elif body.get("done") is False:
            self.begin()
        return 200, {"ok": True, "token": self.token}

    def _refusal(self, token: str, body: dict[str, Any]) -> tuple[str, int]:
        if self.is_gone:
            return "CONSUMER_GONE", 410
        if self.fails:
            self.fails -= 1
            return "UNAVAILABLE", 503
        if body.get("epoch") != self.epoch:
            return "STALE_EPOCH", 409
        claims = "wake_id" in body
        if claims and (self.state != "waking" or body["wake_id"] != self.wake_id):
            return "ALREADY_CLAIMED", 409
        if token != self.token:
            return "TOKEN_INVALID", 401
        if self.expires:
            self.expires -= 1
            self.token = secrets.token_hex(8)
            return "TOKEN_EXPIRED", 401
        if self.state != "live" and not claims:
            return "STALE_EPOCH", 409
        if any(_order(ack["offset"]) < _order(self.acks.get(ack["path"], "-1")) for ack in body.get("acks", ())):
            return "INVALID_OFFSET", 409
        return "", 200


def _order(offset: str) -> tuple[int, int, str]:
    return (1, int(offset), "") if offset.isdigit() else (0 if offset == "-1" else 1, 0, offset)


class _Handler(BaseHTTPRequestHandler):
    server: WakeServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            status, value = self.server.answer(self.headers["Authorization"].removeprefix("Bearer "), body)
        self.server.lets_answer.wait(10)
        answer = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def wake_server() -> Iterator[WakeServer]:
    """A server for as long as the block."""
    server = WakeServer()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def signed(body: bytes, *, secret: str = SECRET, at: float | None = None) -> str:
    """The signature of the draft."""
    now = int(time.time() if at is None else at)
    return f"t={now},sha256={hmac.new(secret.encode(), f'{now}.'.encode() + body, hashlib.sha256).hexdigest()}"
