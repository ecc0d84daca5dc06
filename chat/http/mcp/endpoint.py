"""The ASGI side of `/mcp/{agent}`: who may ask, and how often, before anything of the protocol is read.

A request is complete in itself: there are no sessions, so any process serves any request. A program in a browser's page
is held to the same origins as our sockets, and a foreign Host is refused, so that no page reaches a server on its
visitor's machine through a name of its own (DNS rebinding).
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from django.http import HttpResponse
from django.utils.translation import override

from chat.access.auth import program_is_allowed, served_origin
from chat.errors import AgentNotFound, OriginDenied, Unauthenticated
from chat.http.api.problems import problem, problem_of
from chat.http.mcp.callers import find_caller
from chat.http.mcp.conf import mcp_server_settings
from chat.http.oauth.addresses import ENDPOINT, challenge, offered_agents
from chat.http.request_counts import count_request
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.languages import language_of
from thinkproject.kernel.loading import load

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
_MISDIRECTED: Final = 421
_CORS: Final = (
    (b"access-control-allow-methods", b"POST"),
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id",
    ),
    (b"access-control-expose-headers", b"Mcp-Session-Id, Retry-After, WWW-Authenticate"),
    (b"access-control-max-age", b"600"),
)


class McpEndpoint:
    """Serves MCP for the agents that offer it, passes other requests on."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if not path.startswith(ENDPOINT) or "/" in path.removeprefix(ENDPOINT):  # below it are pages of Django's
            await self.application(scope, receive, send)
            return
        with override(language_of(scope["headers"])):  # before the middleware
            refusal = await _serve(unquote(path.removeprefix(ENDPOINT)), scope, receive, send)
            if refusal is not None:
                await _answer(refusal, send)


async def _serve(agent: str, scope: Scope, receive: Receive, send: Send) -> HttpResponse | None:
    """Serve a request, or give the answer of a refusal. The order of the questions tells strangers the least."""
    origin = served_origin(scope)
    if origin is None:
        return problem(_MISDIRECTED, "host_unknown", "This server does not answer for this host.")
    if not program_is_allowed(scope):
        return problem_of(OriginDenied())
    headers = dict(scope["headers"])
    if b"origin" in headers:  # an allowed one
        send = _readable_by(headers[b"origin"], send)
        if scope["method"] == "OPTIONS":
            await _answer(HttpResponse(status=204), send)
            return None
    refusal = await _serve_allowed(agent, origin, scope, receive, send)
    if refusal is not None:
        await _answer(refusal, send)
    return None


def _readable_by(origin: bytes, send: Send) -> Send:
    """Let pages of an allowed origin read the answer. They send a bearer token; no cookie counts here."""

    async def readable(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            added = [(b"access-control-allow-origin", origin), (b"vary", b"Origin"), *_CORS]
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return readable


async def _serve_allowed(agent: str, origin: str, scope: Scope, receive: Receive, send: Send) -> HttpResponse | None:
    """Do the same for a request of a host and an origin that may ask."""
    if agent not in offered_agents():
        return problem_of(AgentNotFound())
    header = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
    caller = await db(find_caller, header, origin=origin, agent=agent)
    if caller is None:
        refusal = problem_of(Unauthenticated())
        refusal["WWW-Authenticate"] = challenge(origin, agent, "invalid_token" if header else "")
        return refusal
    try:
        await db(count_request, "mcp", caller.user.pk, mcp_server_settings.requests_per_minute)
    except ThinkError as error:
        return problem_of(error)
    if scope["method"] != "POST":  # nothing is sent outside of the answer to a request
        refusal = problem(405, "method_not_allowed", "MCP requests are posted.")
        refusal["Allow"] = "POST"
        return refusal
    await load("chat.http.mcp.server")
    from chat.http.mcp.server import serve  # noqa: PLC0415 - the protocol's package is read when it is first needed

    await serve(caller, scope, receive, send)
    return None


async def _answer(response: HttpResponse, send: Send) -> None:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items()]
    headers.append((b"content-length", str(len(response.content)).encode()))
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})
