"""The endpoints of OAuth 2.1 for programs: metadata, registration, authorisation, tokens, revocation.

They know no cookie, except that the consent page behind `authorize` asks who is signed in; so pages of any origin may
call those that answer JSON.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from chat.access.client_network import client_network
from chat.access.oauth import clients, grants
from chat.errors import AgentNotFound
from chat.http.api.problems import problem, problem_of
from chat.http.oauth.addresses import offered_agents, resource_metadata, server_metadata
from thinkproject.kernel.aio import db
from thinkproject.kernel.loading import load

View = Callable[..., Coroutine[Any, Any, HttpResponse]]


def _open_to_pages(*methods: str) -> Callable[[View], View]:
    """Allow pages of every origin, without credentials, and these methods alone."""

    def decorate(view: View) -> View:
        @csrf_exempt  # no cookie counts here
        @wraps(view)
        async def wrapped(request: HttpRequest, **path: Any) -> HttpResponse:
            if request.method == "OPTIONS":
                response = HttpResponse(status=204)
                response["Access-Control-Allow-Methods"] = ", ".join([*methods, "OPTIONS"])
                response["Access-Control-Allow-Headers"] = "Content-Type, MCP-Protocol-Version"
            elif request.method in methods:
                response = await view(request, **path)
            else:
                response = problem(405, "method_not_allowed", "This address does not know this method.")
                response["Allow"] = ", ".join([*methods, "OPTIONS"])
            response["Access-Control-Allow-Origin"] = "*"
            return response

        return wrapped

    return decorate


def origin_of(request: HttpRequest) -> str:
    """Our origin, as this request names it; Django has checked its Host."""
    return request.build_absolute_uri("/").rstrip("/")


@_open_to_pages("GET")
async def authorization_server(request: HttpRequest) -> HttpResponse:
    """Metadata of this server."""
    return JsonResponse(server_metadata(origin_of(request)))


@_open_to_pages("GET")
async def protected_resource(request: HttpRequest, agent: str) -> HttpResponse:
    """Metadata of one endpoint. An agent that programs may not use is unknown."""
    name = unquote(agent)
    if name not in offered_agents():
        return problem_of(AgentNotFound())
    return JsonResponse(resource_metadata(origin_of(request), name))


@_open_to_pages("POST")
async def register(request: HttpRequest) -> HttpResponse:
    """Register a program."""
    await load("chat.http.oauth.handlers")
    from chat.http.oauth import handlers  # noqa: PLC0415 - as below

    return await handlers.register(request, origin=origin_of(request), network=client_network(request))


@csrf_exempt  # it changes nothing: it leads to the consent page, whose form has a token
@never_cache
async def authorize(request: HttpRequest) -> HttpResponse:
    """Check a program's request, and send the person to the consent page."""
    if request.method not in {"GET", "POST"}:
        return problem(405, "method_not_allowed", "This address does not know this method.")
    await load("chat.http.oauth.handlers")
    from chat.http.oauth import handlers  # noqa: PLC0415 - the protocol's package is read when it is first needed

    return await handlers.authorize(request, origin=origin_of(request))


@_open_to_pages("POST")
async def token(request: HttpRequest) -> HttpResponse:
    """Exchange a code, or a refresh token."""
    await load("chat.http.oauth.handlers")
    from chat.http.oauth import handlers  # noqa: PLC0415 - as above

    return await handlers.token(request, origin=origin_of(request))


@_open_to_pages("POST")
async def revoke(request: HttpRequest) -> HttpResponse:
    """End the grant of a token (RFC 7009). The answer says nothing about the token."""
    client_id, secret = request.POST.get("client_id", ""), request.POST.get("token", "")
    if not secret:
        return JsonResponse({"error": "invalid_request"}, status=400)
    if await db(clients.find_client, client_id) is None:
        return JsonResponse({"error": "invalid_client"}, status=401)
    await db(grants.revoke_by_secret, client_id, secret)
    return HttpResponse(headers={"Cache-Control": "no-store"})


@csrf_exempt
def no_protocol(_request: HttpRequest, agent: str) -> HttpResponse:  # noqa: ARG001 - of the path
    """Answer where MCP is not served: behind WSGI, and in a project whose ASGI application has no `McpEndpoint`."""
    return problem(404, "not_found", "This server does not speak MCP.")
