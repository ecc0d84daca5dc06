"""Requests to authorization servers: discovery, registration, exchange of codes, refresh, revocation.

Everything that is decided about a server's answers is decided here: its issuer, its endpoints, its PKCE. All requests
go through the rules of fetching. The protocol's shapes and the order of its discovery are the `mcp` package's.
"""

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx2
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.oauth2 import OAuthContext, PKCEParameters, check_registration_usable
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    create_client_registration_request,
    create_oauth_metadata_request,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    get_client_metadata_scopes,
    handle_auth_metadata_response,
    handle_protected_resource_response,
    handle_registration_response,
    issuers_match,
    validate_authorization_response_iss,
)
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import ValidationError

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.errors import GrantRefused, McpSignInFailed, OAuthUnreachable
from tools_app.fetching.transport import CheckedTransport
from tools_app.mcp.conf import mcp_settings

CLIENT_NAME: Final = "Think for Django"
MAX_ANSWER_BYTES: Final = 256_000
SECONDS: Final = 20.0
PROBE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": CLIENT_NAME, "version": "1"},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A sign-in that has begun: the page of the authorization server, and what has to be kept until its answer."""

    url: str
    pending: JSONObject


async def begin_sign_in(server_url: str, *, redirect_uri: str, state: str, is_local: bool) -> Begun:
    """Discover the authorization server, register with it, and make the address of its page.

    `is_local`: whether our own address is one of this machine, as in development. Errors: `McpSignInFailed`.
    """
    metadata = OAuthClientMetadata(
        redirect_uris=[redirect_uri],
        client_name=CLIENT_NAME,
        token_endpoint_auth_method="none",  # noqa: S106 - the name of a method
        grant_types=["authorization_code", "refresh_token"],
        application_type="native" if is_local else "web",
    )
    async with _client() as client:
        resource, servers, scope = await _discover_resource(client, server_url)
        found = await _discover_server(client, servers[0] if servers else None, server_url)
        scope = get_client_metadata_scopes(scope, resource, found, metadata.grant_types)
        metadata.scope = scope
        registered = await _register(client, found, metadata)
    pkce = PKCEParameters.generate()
    target = _resource_of(server_url, resource)
    parameters = {
        "response_type": "code",
        "client_id": registered.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": pkce.code_challenge,
        "code_challenge_method": "S256",
        "resource": target,
        **({"scope": scope} if scope else {}),
    }
    endpoint = str(found.authorization_endpoint)
    pending: JSONObject = {
        "verifier": pkce.code_verifier,
        "redirect_uri": redirect_uri,
        "server_url": server_url,
        "resource": target,
        "metadata": found.model_dump(mode="json", exclude_none=True),
        "client": registered.model_dump(mode="json", exclude_none=True),
    }
    return Begun(url=f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(parameters)}", pending=pending)


async def finish_sign_in(pending: JSONObject, *, code: str, issuer: str | None) -> JSONObject:
    """Exchange the code of a sign-in. Gives what has to be kept as its grant. Errors: `McpSignInFailed`."""
    metadata = OAuthMetadata.model_validate(pending["metadata"])
    try:
        validate_authorization_response_iss(issuer, metadata)
    except OAuthFlowError as error:
        raise McpSignInFailed("The answer does not come from the server that was asked.") from error
    data = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": str(pending["redirect_uri"]),
        "code_verifier": str(pending["verifier"]),
    }
    tokens = await _tokens(pending, data)
    kept = {name: value for name, value in pending.items() if name not in {"verifier", "redirect_uri"}}
    return {**kept, "tokens": tokens}


async def refresh_tokens(grant: JSONObject) -> JSONObject:
    """The grant with new tokens. Errors: `GrantRefused`, `OAuthUnreachable`."""
    former = grant["tokens"]
    tokens = await _tokens(grant, {"grant_type": "refresh_token", "refresh_token": str(former["refresh_token"])})
    tokens.setdefault("refresh_token", former["refresh_token"])  # a server need not rotate it
    return {**grant, "tokens": tokens}


async def revoke_tokens(grant: JSONObject) -> bool:
    """Have the server forget the tokens; false where it cannot, or does not answer."""
    metadata = OAuthMetadata.model_validate(grant["metadata"])
    if metadata.revocation_endpoint is None:
        return False
    tokens = grant["tokens"]
    token = tokens.get("refresh_token") or tokens.get("access_token")
    try:
        response = await _post(grant, str(metadata.revocation_endpoint), {"token": str(token)}, has_resource=False)
    except McpSignInFailed:
        return False
    return response.is_success


async def _discover_resource(
    client: httpx2.AsyncClient, server_url: str
) -> tuple[ProtectedResourceMetadata | None, list[str], str | None]:
    """The server's own account: the metadata of the resource, its authorization servers, the wanted scope."""
    refusal = await _get(client, client.build_request("POST", server_url, json=PROBE, headers=_ACCEPT))
    named = extract_resource_metadata_from_www_auth(refusal) if refusal.status_code == 401 else None
    scope = extract_scope_from_www_auth(refusal) if refusal.status_code == 401 else None
    for url in build_protected_resource_metadata_discovery_urls(named, server_url):
        _check_endpoint(url, None)
        response = await _get(client, create_oauth_metadata_request(url))
        found = await handle_protected_resource_response(response)
        if found is not None:
            wanted = resource_url_from_server_url(server_url)
            if not check_resource_allowed(requested_resource=wanted, configured_resource=str(found.resource)):
                raise McpSignInFailed("The server's metadata is about another server.")
            return found, [str(each) for each in found.authorization_servers], scope
    return None, [], scope


async def _discover_server(client: httpx2.AsyncClient, issuer: str | None, server_url: str) -> OAuthMetadata:
    """The metadata of the authorization server, each endpoint on its own origin. Errors: `McpSignInFailed`."""
    expected = issuer or f"{urlsplit(server_url).scheme}://{urlsplit(server_url).netloc}"
    _check_endpoint(expected, None)
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, server_url):
        is_final, found = await handle_auth_metadata_response(await _get(client, create_oauth_metadata_request(url)))
        if found is not None:
            if not issuers_match(str(found.issuer), expected):
                raise McpSignInFailed("The authorization server says that it is another one.")
            methods = found.code_challenge_methods_supported
            if methods is not None and "S256" not in methods:
                raise McpSignInFailed("The authorization server does not support PKCE.")
            for endpoint in (
                found.authorization_endpoint,
                found.token_endpoint,
                found.registration_endpoint,
                found.revocation_endpoint,
            ):
                if endpoint is not None:
                    _check_endpoint(str(endpoint), expected)
            return found
        if not is_final:
            break
    raise McpSignInFailed("The server wants a sign-in and does not say where.")


async def _register(
    client: httpx2.AsyncClient, found: OAuthMetadata, metadata: OAuthClientMetadata
) -> OAuthClientInformationFull:
    parts = urlsplit(str(found.issuer))
    request = create_client_registration_request(found, metadata, f"{parts.scheme}://{parts.netloc}")
    try:
        registered = await handle_registration_response(await _get(client, request))
        check_registration_usable(registered)
    except OAuthRegistrationError as error:
        raise McpSignInFailed("The authorization server does not let us register.") from error
    return registered


async def _tokens(held: JSONObject, data: dict[str, str]) -> JSONObject:
    metadata = OAuthMetadata.model_validate(held["metadata"])
    response = await _post(held, str(metadata.token_endpoint), data)
    if response.status_code >= 500 or response.status_code == 429:
        raise OAuthUnreachable
    if response.status_code != 200:
        raise GrantRefused
    try:
        tokens = OAuthToken.model_validate_json(response.content)
    except ValidationError as error:
        raise OAuthUnreachable("The authorization server's answer cannot be read.") from error
    found: JSONObject = tokens.model_dump(mode="json", exclude_none=True)
    return found


async def _post(held: JSONObject, url: str, data: dict[str, str], *, has_resource: bool = True) -> httpx2.Response:
    registered = OAuthClientInformationFull.model_validate(held["client"])
    context = OAuthContext(
        server_url=held["server_url"],
        client_metadata=OAuthClientMetadata(redirect_uris=registered.redirect_uris or ["http://localhost/"]),
        storage=None,  # type: ignore[arg-type]  # it holds nothing: only the way of authentication is asked
        redirect_handler=None,
        callback_handler=None,
        client_info=registered,
    )
    data = {**data, "client_id": registered.client_id, **({"resource": held["resource"]} if has_resource else {})}
    try:
        data, headers = context.prepare_token_auth(data, {"Accept": "application/json"})
    except OAuthTokenError as error:
        raise GrantRefused from error
    async with _client() as client:
        return await _get(client, client.build_request("POST", url, data=data, headers=headers))


_ACCEPT: Final = {"Accept": "application/json, text/event-stream"}


@contextlib.asynccontextmanager
async def _client() -> AsyncGenerator[httpx2.AsyncClient, None]:
    transport = CheckedTransport(private=mcp_settings.private, max_bytes=MAX_ANSWER_BYTES)
    async with httpx2.AsyncClient(transport=transport, timeout=SECONDS, trust_env=False) as client:
        yield client


async def _get(client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """Send a request and read its answer; no redirect is followed. Errors: `OAuthUnreachable`."""
    try:
        response = await client.send(request, follow_redirects=False, stream=True)
        try:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                return response  # the server wants no sign-in: its status is enough
            await response.aread()
        finally:
            await response.aclose()
    except httpx2.HTTPError as error:
        raise OAuthUnreachable from error
    return response


def _check_endpoint(url: str, issuer: str | None) -> None:
    """Refuse what is not https, and what is not on the issuer's origin. Errors: `McpSignInFailed`.

    What is in one of the site's private networks may be http: the connection checks that it is.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and mcp_settings.private_networks):
        raise McpSignInFailed("An address of the sign-in is not https.")
    if issuer is not None and _origin(parts) != _origin(urlsplit(issuer)):
        raise McpSignInFailed("An address of the sign-in is not on the authorization server's own origin.")


def _origin(parts: Any) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _resource_of(server_url: str, resource: ProtectedResourceMetadata | None) -> str:
    return resource_url_from_server_url(server_url) if resource is None else str(resource.resource)
