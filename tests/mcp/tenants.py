"""A server of the network and an authorization server as they really are: issuers of tenants, no registration.

What they say is set by the test; they note what they were asked.
"""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from .guarded import free_port, serving


@dataclass
class Tenants:
    """Both servers, on one port. `asked`: what the token endpoint was sent, with the client of the header."""

    origin: str
    tenant: str = "/tenant1"
    issuer: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)  # over what is said otherwise
    resource: dict[str, Any] = field(default_factory=dict)
    challenge: str = ""
    refusal: tuple[str, int] = ("invalid_client", 401)
    clients: dict[str, str] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    authorized: list[dict[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The address of the server of tools."""
        return f"{self.origin}/mcp"

    @property
    def named(self) -> str:
        """The issuer that the server of tools names."""
        return self.origin + self.tenant

    def app(self) -> Starlette:
        """The application of both."""
        return Starlette(
            routes=[
                Route("/mcp", self._tools, methods=["POST"]),
                Route("/.well-known/oauth-protected-resource/mcp", self._resource),
                Route("/.well-known/oauth-authorization-server{tenant:path}", self._server),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
            ]
        )

    async def _tools(self, _request: Request) -> Response:
        where = f'resource_metadata="{self.origin}/.well-known/oauth-protected-resource/mcp"'
        return Response(status_code=401, headers={"WWW-Authenticate": f"Bearer {where}{self.challenge}"})

    async def _resource(self, _request: Request) -> Response:
        return JSONResponse({"resource": self.url, "authorization_servers": [self.named], **self.resource})

    async def _server(self, _request: Request) -> Response:
        found = {
            "issuer": self.issuer or self.named,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            **self.metadata,
        }
        return JSONResponse({name: value for name, value in found.items() if value is not None})

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        self.authorized.append(asked)
        if asked["client_id"] not in self.clients:
            return Response("unknown client", status_code=400)
        return RedirectResponse(f"{asked['redirect_uri']}?code=the-code&state={asked['state']}")

    async def _token(self, request: Request) -> Response:
        async with request.form() as form:
            asked = {name: str(value) for name, value in form.items()}
        scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
        if scheme == "Basic":
            name, _, secret = base64.b64decode(encoded).decode().partition(":")
            asked |= {"basic_id": unquote(name), "basic_secret": unquote(secret)}
        self.asked.append(asked)
        client, secret = asked.get("client_id", ""), asked.get("basic_secret", asked.get("client_secret", ""))
        if self.clients.get(client) != secret:
            return JSONResponse({"error": self.refusal[0]}, status_code=self.refusal[1])
        return JSONResponse({"access_token": "granted-token", "token_type": "Bearer", "expires_in": 3600})


@contextmanager
def tenants() -> Iterator[Tenants]:
    """Serve both."""
    port = free_port()
    made = Tenants(origin=f"http://127.0.0.1:{port}")
    with serving(made.app(), port):
        yield made
