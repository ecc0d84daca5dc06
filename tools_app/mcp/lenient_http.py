"""Answers over HTTP as the client of the protocol takes them: what servers say in other shapes, in its own.

An answer is read whatever media type it claims, a list of messages as a stream of them, and one that is no message at
all, or an error of HTTP, becomes an error of the protocol in words that a person understands. Streams pass unread.
"""

import json
from typing import Any, Final

import httpx2

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

JSON: Final = "application/json"
STREAM: Final = "text/event-stream"
FAILED: Final = -32603
"""Of JSON-RPC: an internal error."""
MAX_SAID_BYTES: Final = 4_000
MAX_SAID_CHARS: Final = 300
OWN_STATUSES: Final = frozenset({400, 401, 404})
"""The client and sign-ins tell these apart."""


class LenientTransport(httpx2.AsyncBaseTransport):
    """Another transport, whose answers to requests of the protocol are put in order."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request. Errors: those of the transport, also for an answer that is too large."""
        response = await self._transport.handle_async_request(request)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        status = response.status_code
        if request.method != "POST" or kind == STREAM or status in OWN_STATUSES or not _has_answer(status):
            return response
        asked = _decoded(await request.aread())
        if not isinstance(asked, dict) or "id" not in asked or "method" not in asked:
            return response
        body = await response.aread()
        await response.aclose()
        answer = _decoded(body)
        if status >= 400:
            if not (isinstance(answer, dict) and isinstance(answer.get("error"), dict)):
                answer = _error(asked, f"It answered with the HTTP status {status}.{_said(answer, body, kind)}")
        elif isinstance(answer, list) and answer and all(map(_is_message, answer)):
            return _made(response, STREAM, "".join(f"data: {dump(each)}\n\n" for each in answer).encode())
        elif not _is_message(answer):
            answer = _error(
                asked, f"Its answer cannot be read: it is no message of the protocol ({kind or 'no type'})."
            )
        else:
            return _made(response, JSON, body)
        return _made(response, JSON, dump(answer).encode())

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()


def _has_answer(status: int) -> bool:
    return status == 200 or status >= 400


def _decoded(body: bytes) -> JSONValue:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _is_message(value: Any) -> bool:
    """Whether it has the shape of an answer or of a message of the server's own."""
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("result"), dict) or isinstance(value.get("error"), dict) or "method" in value


def _said(answer: JSONValue, body: bytes, kind: str) -> str:
    """The words of an error of HTTP for people, in front of them a space; nothing of a page."""
    found: Any = ""
    if isinstance(answer, dict):
        found = next((answer[name] for name in ("error", "message", "detail") if isinstance(answer.get(name), str)), "")
    elif kind == "text/plain":
        found = body[:MAX_SAID_BYTES].decode(errors="replace")
    words = " ".join(found.split())[:MAX_SAID_CHARS]
    return f" It says: {words}" if words else ""


def _error(asked: JSONObject, message: str) -> JSONObject:
    return {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": FAILED, "message": message}}


def _made(response: httpx2.Response, media_type: str, body: bytes) -> httpx2.Response:
    """The same response with this body."""
    headers = [
        (name, value)
        for name, value in response.headers.multi_items()
        if name.lower() not in {"content-type", "content-length", "transfer-encoding"}
    ]
    headers.append(("content-type", media_type))
    return httpx2.Response(response.status_code, headers=headers, content=body, request=response.request)
