"""The authorization handlers of the protocol's authors over requests of Django's."""

from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from django.http import HttpRequest, HttpResponse
from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.settings import ClientRegistrationOptions
from starlette.requests import Request
from starlette.responses import Response

from chat.access.oauth.scopes import Scope
from chat.http.api.problems import problem, problem_of
from chat.http.oauth.addresses import CONSENT, consent_page
from chat.http.oauth.provider import Provider
from thinkproject.kernel.errors import ThinkError

MAX_LOCATION: Final = 4_000
MAX_WRONG: Final = 500

Handler = Callable[[Request], Awaitable[Response]]


async def register(request: HttpRequest, *, origin: str, network: str) -> HttpResponse:
    """Register a program that asks from this network."""
    scopes = [scope.value for scope in Scope]
    options = ClientRegistrationOptions(enabled=True, valid_scopes=scopes, default_scopes=scopes)
    return await _answer(RegistrationHandler(Provider(origin, network=network), options).handle, request)


async def authorize(request: HttpRequest, *, origin: str) -> HttpResponse:
    """Check a request, and lead to the consent page, also with what is wrong: a person says whether to go back.

    Anyone may register an address, so nothing leads there before a person who is signed in has said so.
    """
    response = await _answer(AuthorizationHandler(Provider(origin)).handle, request)
    location = response.get("Location", "")
    if not location or location.startswith(f"{CONSENT}?"):
        return response
    if len(location) > MAX_LOCATION:
        return problem(400, "bad_request", "The request is malformed.")
    fields = dict(parse_qsl(urlsplit(location).query))
    response["Location"] = consent_page({"back": location, "wrong": fields.get("error_description", "")[:MAX_WRONG]})
    return response


async def token(request: HttpRequest, *, origin: str) -> HttpResponse:
    """Exchange a code or a refresh token."""
    provider = Provider(origin, resource=request.POST.get("resource", ""))
    return await _answer(TokenHandler(provider, ClientAuthenticator(provider)).handle, request)


async def _answer(handler: Handler, request: HttpRequest) -> HttpResponse:
    """Call a handler of the protocol's authors with a request of Django's, which has been read and limited."""
    body = request.body
    kept = ("Content-Type", "Authorization")
    headers = [(n.lower().encode(), request.headers[n].encode("latin-1")) for n in kept if n in request.headers]
    scope = {
        "type": "http",
        "method": request.method,
        "path": request.path,
        "query_string": request.META.get("QUERY_STRING", "").encode("latin-1"),
        "headers": headers,
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    try:
        given = await handler(Request(scope, receive))
    except ThinkError as error:
        return problem_of(error)
    except UnicodeDecodeError:
        return problem(400, "bad_request", "The request is malformed.")
    response = HttpResponse(bytes(given.body), status=given.status_code)
    for name, value in given.headers.items():
        if name != "content-length":
            response[name] = value
    return response
