"""A server of the network at which people sign in, with an authorization server of its own, in a thread of the test.

The HTTP side of both is the `mcp` package's; what is decided is in `Consent`, which tests look into.
"""

import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.responses import Response


@dataclass
class Consent(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Agrees to everything at once, and notes what happened."""

    url: str = ""
    lifetime: int | None = 3600
    refuses: bool = False
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)
    refreshed: int = 0
    revoked: int = 0
    wanted: str = ""  # a scope without which tools cannot be called
    gives_secrets: bool = False  # to clients, though they ask for none

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        if self.gives_secrets:
            client_info.client_secret, client_info.token_endpoint_auth_method = "of-client", "client_secret_post"
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.refuses:
            return f"{params.redirect_uri}?{urlencode({'error': 'access_denied', 'state': params.state or ''})}"
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return f"{params.redirect_uri}?{urlencode({'code': code.code, 'state': params.state or ''})}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        if self.codes.pop(authorization_code.code, None) is None:
            raise TokenError(error="invalid_grant")
        return self._issue(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.refreshed += 1
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError(error="invalid_grant")
        return self._issue(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.access.get(token)
        if found is None or (found.expires_at is not None and found.expires_at < time.time()):
            return None
        return found

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.revoked += 1
        self.access.clear()
        self.refresh.clear()

    def forget_tokens(self) -> None:
        """Take all tokens away, as an administrator of that server may."""
        self.access.clear()
        self.refresh.clear()

    def _issue(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        ends = None if self.lifetime is None else int(time.time()) + self.lifetime
        access = AccessToken(
            token=f"access-{secrets.token_urlsafe(24)}",
            client_id=client_id,
            scopes=scopes,
            expires_at=ends,
            resource=resource,
        )
        refresh = RefreshToken(
            token=f"refresh-{secrets.token_urlsafe(24)}", client_id=client_id, scopes=scopes, resource=resource
        )
        self.access[access.token] = access
        self.refresh[refresh.token] = refresh
        return OAuthToken(access_token=access.token, refresh_token=refresh.token, expires_in=self.lifetime)


@contextmanager
def guarded_server() -> Iterator[Consent]:
    """Serve at `consent.url`."""
    port = free_port()
    consent = Consent(url=f"http://127.0.0.1:{port}/mcp")
    settings = AuthSettings(
        issuer_url=f"http://127.0.0.1:{port}",
        resource_server_url=consent.url,
        client_registration_options=ClientRegistrationOptions(enabled=True),
        revocation_options=RevocationOptions(enabled=True),
        validate_token_resource=True,
    )
    server = MCPServer("guarded", auth=settings, auth_server_provider=consent)

    @server.tool()
    def secret() -> str:
        """Tell the secret."""
        return "the secret of the guarded server"

    app = server.streamable_http_app()

    async def scoped(scope: Any, receive: Any, send: Any) -> None:
        token = dict(scope.get("headers", ())).get(b"authorization", b"").decode().removeprefix("Bearer ")
        access = consent.access.get(token)
        if access is None or not consent.wanted or set(consent.wanted.split()) <= set(access.scopes):
            await app(scope, receive, send)
            return
        challenge = f'Bearer error="insufficient_scope", scope="{consent.wanted}", error_description="Not enough"'
        await Response(status_code=403, headers={"WWW-Authenticate": challenge})(scope, receive, send)

    with serving(scoped, port):
        yield consent


@contextmanager
def serving(app: Any, port: int) -> Iterator[None]:
    """Serve an application in a thread."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.started
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True  # streams of events never end by themselves
        thread.join(timeout=10)


def free_port() -> int:
    """A port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
