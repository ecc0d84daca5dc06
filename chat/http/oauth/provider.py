"""Our grants behind the authorization handlers of the protocol's authors.

Their handlers read and check requests, compare the verifier with its challenge and write answers; what is stored, for
whom and for how long is ours. Programs have no secrets: whatever they ask for, they are registered as public, and the
verifier of PKCE says that the code is theirs.
"""

import re
from typing import Final

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl

from chat.access.oauth import clients, grants
from chat.access.oauth.grants import TokenPair
from chat.access.oauth.scopes import Scope, known_scopes
from chat.errors import InputInvalid
from chat.http.oauth.addresses import agent_of, consent_page
from thinkproject.kernel.aio import db

_CHALLENGE: Final = re.compile(r"^[A-Za-z0-9_-]{43}$")
NO_SECRET: Final = "none"  # noqa: S105 - a method, no password
_MAX_STATE: Final = 2_000
ALL_SCOPES: Final = " ".join(scope.value for scope in Scope)


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """For one request. `origin`: ours; `network`: the program's; `resource`: as a token request names it, or empty."""

    def __init__(self, origin: str, *, network: str = "", resource: str = "") -> None:
        self._origin = origin
        self._network = network
        self._resource = resource.rstrip("/")

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """Find a registered program."""
        client = await db(clients.find_client, client_id)
        if client is None:
            return None
        return OAuthClientInformationFull(
            client_id=client.pk,
            client_name=client.name,
            redirect_uris=[AnyUrl(uri) for uri in client.redirect_uris],
            token_endpoint_auth_method=NO_SECRET,
            scope=ALL_SCOPES,
        )

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Store a program; the answer has what we made of its request. Errors: `QuotaExceeded`."""
        client_info.token_endpoint_auth_method = NO_SECRET
        client_info.client_secret = client_info.client_secret_expires_at = None
        client_info.scope = ALL_SCOPES
        uris = [str(uri) for uri in client_info.redirect_uris or []]
        name = client_info.client_name or ""
        try:
            client = await db(clients.register, name, uris, network=self._network)
        except InputInvalid as error:
            raise RegistrationError("invalid_redirect_uri", error.message) from error
        client_info.client_id = client.pk

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Send the person to the consent page. Nothing is stored before they agree: the address has the request."""
        agent = agent_of(self._origin, params.resource or "")
        if agent is None:
            raise AuthorizeError("invalid_target", "`resource` has to be the address of an endpoint of this server.")
        if not _CHALLENGE.match(params.code_challenge):
            raise AuthorizeError("invalid_request", "`code_challenge` has to be that of S256.")
        if len(params.state or "") > _MAX_STATE:
            raise AuthorizeError("invalid_request", "`state` is too long.")
        asked = {
            "client": client.client_id,
            "agent": agent,
            "scopes": [scope.value for scope in known_scopes(params.scopes or list(Scope))],
            "challenge": params.code_challenge,
            "redirect": str(params.redirect_uri),
            "is_explicit": params.redirect_uri_provided_explicitly,
            "state": params.state,
        }
        return consent_page(asked)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """Find an unused code. One that was used ends its grant."""
        grant = await db(grants.find_code, client.client_id, authorization_code)
        if grant is None or not self._is_for(grant.resource):
            return None
        return AuthorizationCode(
            code=grant.pk,  # what is exchanged is the grant
            scopes=grant.scopes,
            expires_at=grant.code_expires_at.timestamp(),
            client_id=grant.client_id,
            code_challenge=grant.code_challenge,
            redirect_uri=AnyUrl(grant.redirect_uri),
            redirect_uri_provided_explicitly=grant.redirect_is_explicit,
            resource=grant.resource,
        )

    async def exchange_authorization_code(
        self,
        client: OAuthClientInformationFull,  # noqa: ARG002 - theirs
        authorization_code: AuthorizationCode,
    ) -> OAuthToken:
        """Exchange a code whose verifier was right."""
        return _tokens(await db(grants.exchange_code, authorization_code.code))

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        """Find a refresh token. One that was replaced ends its grant."""
        token = await db(grants.find_refresh, client.client_id, refresh_token)
        if token is None or not self._is_for(token.grant.resource):
            return None
        return RefreshToken(
            token=str(token.pk),
            client_id=token.grant.client_id,
            scopes=token.grant.scopes,
            expires_at=int(token.expires_at.timestamp()),
            resource=token.grant.resource,
        )

    async def exchange_refresh_token(
        self,
        client: OAuthClientInformationFull,  # noqa: ARG002 - theirs
        refresh_token: RefreshToken,
        scopes: list[str],  # noqa: ARG002 - theirs
    ) -> OAuthToken:
        """Replace a refresh token. The new ones have the scopes of the grant."""
        return _tokens(await db(grants.refresh, int(refresh_token.token)))

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Not used: requests with tokens do not come through here."""
        raise NotImplementedError

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """Not used: revocation has a view of its own."""
        raise NotImplementedError

    def _is_for(self, resource: str) -> bool:
        return not self._resource or self._resource == resource


def _tokens(pair: TokenPair | None) -> OAuthToken:
    if pair is None:
        raise TokenError("invalid_grant", "It was used before, or has ended.")
    return OAuthToken(
        access_token=pair.access,
        refresh_token=pair.refresh,
        expires_in=pair.expires_in,
        scope=" ".join(scope.value for scope in pair.scopes),
    )
