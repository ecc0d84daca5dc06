"""A model server of a test's own making: real HTTP on loopback, each answer a function of the request's body."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer: a status with a body, or with status 200 and no body a stream that says `text`."""

    status: int = 200
    body: Any = None
    text: str = "hi"
    calls: tuple[tuple[str, JSON], ...] = ()
    usage: JSON = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


def refused(message: str, *, status: int = 400, **more: Any) -> Reply:
    """A refusal in the usual form."""
    return Reply(status=status, body={"error": {"message": message, "type": "invalid_request_error", **more}})


def inside(refusal: Reply) -> Reply:
    """The same refusal within a stream of status 200, after a chunk without a word."""
    error = refusal.body if isinstance(refusal.body, dict) else {"error": {"message": refusal.body}}
    role = {"id": "r1", "choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]}
    error = error if isinstance(error.get("error"), dict | str) else {"error": error}
    return Reply(body=f"data: {json.dumps(role)}\n\ndata: {json.dumps(error)}\n\n")


@dataclass(slots=True)
class OddProvider:
    """A running server. `bodies`: of the requests for answers, in order; `pages`: what it gives besides, by path."""

    base_url: str
    answer: Callable[[JSON], Reply]
    pages: dict[str, Any]
    bodies: list[JSON] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # methods and paths of all other requests


@contextmanager
def odd_provider(answer: Callable[[JSON], Reply], pages: dict[str, Any] | None = None) -> Iterator[OddProvider]:
    """Serve until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    provider = OddProvider(f"http://127.0.0.1:{server.server_port}/v1", answer, pages or {})
    server.provider = provider  # type: ignore[attr-defined]  # the handler finds it there
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _provider(self) -> OddProvider:
        return self.server.provider  # type: ignore[attr-defined,no-any-return]  # as above

    def do_GET(self) -> None:
        self._page({})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.endswith(("/chat/completions", "/responses")):
            self._page(body)
            return
        self._provider.bodies.append(body)
        reply = self._provider.answer(body)
        if reply.status == 200 and reply.body is None:
            self._send(200, _stream(reply), "text/event-stream", reply.headers)
        else:
            body = reply.body if isinstance(reply.body, str | bytes) else json.dumps(reply.body)
            data = body.encode() if isinstance(body, str) else body
            self._send(reply.status, data, "application/json", reply.headers)

    def _page(self, body: JSON) -> None:
        self._provider.asked.append(f"{self.command} {self.path}")
        page = self._provider.pages.get(self.path)
        page = page(body) if callable(page) else page
        self._send(404 if page is None else 200, json.dumps(page).encode(), "application/json", {})

    def _send(self, status: int, data: bytes, media_type: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": media_type, "content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Keep quiet."""


def _stream(reply: Reply) -> bytes:
    calls = [
        {"index": index, "id": f"call_{name}_{index}", "type": "function"}
        | {"function": {"name": name, "arguments": json.dumps(given)}}
        for index, (name, given) in enumerate(reply.calls)
    ]
    delta: JSON = {"tool_calls": calls} if calls else {"content": reply.text}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, **reply.usage}
    chunks = [
        {"id": "r1", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"id": "r1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]},
        {"id": "r1", "choices": [], "usage": usage},
    ]
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*events, "data: [DONE]\n\n"]).encode()
