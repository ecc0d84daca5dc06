"""A server of the network with the habits of real ones: legal, half legal, or plainly wrong, and common all the same.

Each habit is a function from a message to the response to it; `None` leaves the message to the plain answer.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, TypeAlias

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

Habit: TypeAlias = Callable[["Habitual", dict[str, Any]], "Response | None"]
LOG: Final = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hello"}}
UNKNOWN: Final = {"jsonrpc": "2.0", "method": "notifications/of/tomorrow"}
PROGRESS: Final = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": "of nothing", "progress": 1},
}
CHANGED: Final = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
PING: Final = {"jsonrpc": "2.0", "id": "are you there", "method": "ping"}
SAMPLING: Final = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 10},
}
OF_TOMORROW: Final = {"jsonrpc": "2.0", "id": 8, "method": "tomorrow/ask", "params": {}}


class Habitual:
    """Offers the tool `count`. Notes what it was sent, and how often its tools were listed."""

    def __init__(self, habit: Habit, **result: Any) -> None:
        self.habit = habit
        self.sent: list[dict[str, Any]] = []
        self.listed = 0
        self.path = "/mcp"
        self.initialized = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "habitual", "version": "1"},
            **result,
        }
        self.initialized = {name: value for name, value in self.initialized.items() if value is not ...}
        methods = ["GET", "POST", "DELETE"]
        self.app = Starlette(routes=[Route(path, self._answer, methods=methods) for path in ("/mcp", "/mcp/")])

    def plain(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request."""
        results: dict[str, Any] = {
            "initialize": self.initialized,
            "tools/list": {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "one"}]},
        }
        if message["method"] in results:
            return {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
        error = {"code": -32601, "message": "Method not found"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}

    async def _answer(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        message = json.loads(await request.body())
        self.sent.append(message)
        self.listed += message.get("method") == "tools/list"
        if request.url.path == self.path and (response := self.habit(self, message)) is not None:
            return response
        return JSONResponse(self.plain(message)) if _is_request(message) else Response(status_code=202)


def _is_request(message: dict[str, Any]) -> bool:
    return "id" in message and "method" in message


def stream(text: str, *, size: int = 10_000, media_type: str = "text/event-stream") -> Response:
    """A stream of events in pieces of this size."""
    data = text.encode()

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), size):
            yield data[at : at + size]
            await asyncio.sleep(0)  # lets each piece go out by itself

    return StreamingResponse(pieces(), headers={"content-type": media_type})


def events(*messages: dict[str, Any]) -> str:
    """Messages as a stream of events."""
    return "".join(f"event: message\ndata: {json.dumps(message)}\n\n" for message in messages)


def for_requests(make: Callable[["Habitual", dict[str, Any]], "Response | None"]) -> Habit:
    """A habit of answering requests."""
    return lambda server, message: make(server, message) if _is_request(message) else None


def for_calls(make: Callable[["Habitual", dict[str, Any]], "Response | None"]) -> Habit:
    """A habit of answering calls of tools."""
    return lambda server, message: make(server, message) if message.get("method") == "tools/call" else None


def streamed(*before: dict[str, Any], after: tuple[dict[str, Any], ...] = ()) -> Habit:
    """Answer with a stream that has other messages before and behind the answer."""
    return for_requests(lambda server, message: stream(events(*before, server.plain(message), *after)))


def rewritten(change: Callable[[str], str], **options: Any) -> Habit:
    """Answer with a stream whose text is changed."""
    return for_requests(lambda server, message: stream(change(events(server.plain(message))), **options))


def headed(media_type: str) -> Habit:
    """Answer with JSON of this media type; none if it is empty."""

    def answer(server: Habitual, message: dict[str, Any]) -> Response:
        response = Response(json.dumps(server.plain(message)))
        if media_type:
            response.headers["content-type"] = media_type
        return response

    return for_requests(answer)


def changed(change: Callable[[dict[str, Any]], Any]) -> Habit:
    """Answer with JSON that is changed."""
    return for_requests(lambda server, message: JSONResponse(change(server.plain(message))))


def to_notifications(response: Callable[[], Response]) -> Habit:
    """Answer notifications in this way."""
    return lambda _server, message: None if _is_request(message) else response()


def _in_lines(text: str) -> str:
    """The data of an event in several lines."""
    return text.replace('{"jsonrpc"', '{\ndata: "jsonrpc"')


USABLE: Final[dict[str, Habit]] = {
    "json in odd case": headed("Application/JSON; Charset=UTF-8"),
    "json of no type": headed(""),
    "json as text": headed("text/plain; charset=utf-8"),
    "json in a list": changed(lambda answer: [answer]),
    "a list with a notification": changed(lambda answer: [LOG, answer]),
    "an id as text": changed(lambda answer: {**answer, "id": str(answer["id"])}),
    "unknown fields": changed(lambda answer: {**answer, "took": 3}),
    "a stream in odd case": rewritten(str, media_type="Text/Event-Stream; Charset=UTF-8"),
    "a byte at a time": rewritten(str, size=1),
    "windows line ends": rewritten(lambda text: text.replace("\n", "\r\n"), size=7),
    "old line ends": rewritten(lambda text: text.replace("\n", "\r"), size=7),
    "comments": rewritten(lambda text: ": hello\n\n:\n" + text + ": bye\n\n"),
    "several lines of data": rewritten(_in_lines, size=5),
    "no name of the event": rewritten(lambda text: text.replace("event: message\n", "")),
    "no space behind the colon": rewritten(lambda text: text.replace(": {", ":{")),
    "other events": rewritten(lambda text: "event: heartbeat\ndata: {}\n\nretry: 10\n\n" + text),
    "an empty event": rewritten(lambda text: "id: 0\ndata:\n\n" + text),
    "a byte order mark": rewritten(lambda text: "\ufeff" + text),
    "notifications first": streamed(LOG, PROGRESS, UNKNOWN),
    "notifications behind": streamed(after=(LOG, PROGRESS)),
    "a ping": streamed(PING),
    "a question outside of a call": streamed(SAMPLING),
    "a request of tomorrow": streamed(OF_TOMORROW),
    "a redirect to the slash": lambda server, _message: RedirectResponse(f"{server.path}/", 307),
    "200 for notifications": to_notifications(lambda: Response(status_code=200)),
    "204 for notifications": to_notifications(lambda: Response(status_code=204)),
    "null for notifications": to_notifications(lambda: JSONResponse(None)),
    "400 for notifications": to_notifications(lambda: Response(status_code=400)),
}
"""With these a server can be used."""
BROKEN: Final[dict[str, tuple[Habit, str]]] = {
    "202 for a call": (for_calls(lambda _server, _message: Response(status_code=202)), "202 Accepted"),
    "nothing": (for_calls(lambda _server, _message: Response(media_type="application/json")), "cannot be read"),
    "half a message": (for_calls(lambda _server, _message: JSONResponse({"jsonrpc": "2.0"})), "cannot be read"),
    "a page": (for_calls(lambda _server, _message: Response("<p>Hi</p>", media_type="text/html")), "text/html"),
    "a stream that ends": (for_calls(lambda _server, _message: stream(": bye\n\n")), "has ended"),
    "a stream of nonsense": (for_calls(lambda _server, _message: stream("data: {nonsense\n\n")), "cannot be read"),
    "502": (for_calls(lambda _server, _message: Response("<h1>Bad</h1>", 502)), "502"),
    "429": (for_calls(lambda _server, _message: Response(status_code=429)), "429"),
    "403": (for_calls(lambda _server, _message: JSONResponse({"detail": "no way"}, 403)), "403. It says: no way"),
    "a result that is none": (
        for_calls(lambda _server, message: JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": ["x"]})),
        "cannot be read",
    ),
    "another origin": (
        for_calls(lambda _server, _message: RedirectResponse("http://127.0.0.1:9/mcp", 307)),
        "Redirect to",
    ),
}
"""With these a call fails, with these words for the model, and the server stays usable."""
