"""Body limits of HTTP requests by route. Larger bodies are answered with 413 and not stored.

`BodyLimits` is the ASGI middleware; it bounds what an application behind uvicorn reads. Daphne reads a whole body
before it starts the application, so `thinkproject.run.server` asks `limit_of` itself (`bounded_requests.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from django.conf import settings
from django.urls import Resolver404, ResolverMatch, resolve
from django.utils.translation import override

from chat.durable_streams.conf import durable_stream_settings
from chat.files.conf import file_settings
from chat.http.api.problems import problem
from chat.http.conf import http_settings
from thinkproject.kernel.languages import language_of
from thinkproject.kernel.phrases import Phrase
from tools_app.workspace import unpacking
from tools_app.workspace.conf import workspace_settings

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MULTIPART_BYTES = 64 * 1024
"""What a form adds to the one file in it."""
LINGER_SECONDS = 5.0
"""For so long the rest of a refused body is read and dropped: a client that still sends would not see the answer."""

_JSON = frozenset({"use-chat", "get-messages", "mcp"})
_JSON_NAMESPACES = frozenset({"think-api", "admin"})
MIB: Final = 1024 * 1024


def limit_of(path: str) -> int:
    """Bytes that the body of a request to this path may have. Paths that lead nowhere have the limit of a page."""
    try:
        match = resolve(path)
    except Resolver404:
        return http_settings.request_max_bytes
    return _limit_of_route(match)


def smallest_limit() -> int:
    """The body limit of a path."""
    return http_settings.request_max_bytes


def refusal(limit: int) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Headers and body of the 413."""
    size = f"{limit // MIB} MiB" if limit >= MIB else f"{max(1, limit // 1024)} KiB"
    text = Phrase("This is more than the {limit} that can be sent at once. Send less, or smaller files.", limit=size)
    response = problem(413, "too_large", text, {"max_bytes": limit})
    headers = [
        (b"content-type", response["Content-Type"].encode()),
        (b"content-length", str(len(response.content)).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
    ]
    return headers, response.content


class BodyLimits:
    """Refuses a body by its `Content-Length`, and one without a length as soon as too much of it has been read."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        length = _declared_length(scope["headers"])
        if length is not None and length <= smallest_limit():
            await self.application(scope, receive, send)
            return
        limit = limit_of(scope["path"].removeprefix(scope.get("root_path", "")) or "/")
        if length is None:
            await self._serve_counted(scope, receive, send, limit)
        elif length > limit:
            await _refuse(scope, limit, receive, send)
        else:
            await self.application(scope, receive, send)

    async def _serve_counted(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        counted = _CountedBody(receive, send, limit)
        await self.application(scope, counted.receive, counted.send)
        if counted.is_exceeded and not counted.has_answer:
            await _refuse(scope, limit, receive, send)


class _CountedBody:
    """The channels of one request, with its body counted. To the application, exceeding the limit is a disconnect."""

    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self._receive = receive
        self._send = send
        self._limit = limit
        self._count = 0
        self.is_exceeded = False
        self.has_answer = False

    async def receive(self) -> Message:
        if self.is_exceeded:
            return {"type": "http.disconnect"}
        message = await self._receive()
        self._count += len(message.get("body", b""))
        self.is_exceeded = self._count > self._limit
        return {"type": "http.disconnect"} if self.is_exceeded else message

    async def send(self, message: Message) -> None:
        self.has_answer = True
        await self._send(message)


async def _refuse(scope: Scope, limit: int, receive: Receive, send: Send) -> None:
    with override(language_of(scope["headers"])):  # before the middleware
        headers, body = refusal(limit)
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})  # complete by its length
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while (message := await receive())["type"] == "http.request" and message.get("more_body"):
                pass
    except TimeoutError:
        pass
    await send({"type": "http.response.body", "body": b""})


_UPLOADS: Mapping[str, Callable[[], int]] = {
    "/files": lambda: file_settings.max_bytes + MULTIPART_BYTES,
    "/archives": lambda: file_settings.archive_max_bytes + MULTIPART_BYTES,
    "/imports": lambda: file_settings.import_max_bytes + MULTIPART_BYTES,
    "/workspace/content": lambda: workspace_settings.file_max_bytes,
    "/files/content": lambda: workspace_settings.file_max_bytes,  # of projects
    "/workspace/archive": lambda: unpacking.ARCHIVE_BYTES + MULTIPART_BYTES,
}
"""Operations that take files, by the ends of their paths: a path of several methods has the name of the first alone."""


def _limit_of_route(match: ResolverMatch) -> int:
    name = match.url_name
    if match.namespace == "think-api":
        upload = next((limit for end, limit in _UPLOADS.items() if f"/{match.route}".endswith(end)), None)
        if upload is not None:
            return upload()
    if name == "durable-stream":
        return durable_stream_settings.append_bytes
    if match.namespace in _JSON_NAMESPACES or name in _JSON:
        return int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE or http_settings.request_max_bytes)
    return http_settings.request_max_bytes


def _declared_length(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The declared length of a body; `None` if unknown."""
    fields = dict(headers)
    if b"transfer-encoding" in fields:
        return None
    length = fields.get(b"content-length", b"0")
    return int(length) if length.isdigit() else None
