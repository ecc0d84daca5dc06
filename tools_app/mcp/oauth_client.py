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
    union_scopes,
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
from thinkproject.kernel.phrases import Phrase
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.errors import GrantRefused, McpSignInFailed, OAuthUnreachable
from tools_app.fetching.transport import CheckedTransport
from tools_app.mcp.conf import mcp_settings

CLIENT_NAME: Final = "Think for Django"
MAX_ANSWER_BYTES: Final = 256_000
SECONDS: Final = 20.0
MAX_SHOWN: Final = 300
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


async def begin_sign_in(
    spec: McpServerSpec, *, redirect_uri: str, state: str, is_local: bool, wanted: str = ""
) -> Begun:
    """Discover the authorization server, register with it unless that was done by hand, and make its page's address.

    `is_local`: whether our own address is one of this machine, as in development. `wanted`: the scope that the server
    asked for when a token was not enough, besides the one that it asks for at first. Errors: `McpSignInFailed`.
    """
    metadata = OAuthClientMetadata(
        redirect_uris=[redirect_uri],
        client_name=CLIENT_NAME,
        token_endpoint_auth_method="none",  # noqa: S106 - the name of a method
        grant_types=["authorization_code", "refresh_token"],
        application_type="native" if is_local else "web",
    )
    async with _client() as client:
        resource, servers, scope = await _discover_resource(client, spec.url)
        allowed = [each for each in servers if issuers_match(each, spec.allowed_issuer)]
        issuer = next(iter([*allowed, *servers]), None)
        found = await _discover_server(client, issuer, spec)
        scope = metadata.scope = union_scopes(get_client_metadata_scopes(scope, resource), wanted or None)
        registered = _by_hand(spec, found, metadata) if spec.client_id else await _register(client, found, metadata)
    pkce = PKCEParameters.generate()
    target = _resource_of(spec.url, resource)
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
        "server_url": spec.url,
        "resource": target,
        "scope": scope or "",
        "wanted": wanted,
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
    kept = {name: value for name, value in pending.items() if name not in {"verifier", "redirect_uri", "wanted"}}
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
    scope = scope.strip('"') if scope else None  # an empty one is found with its quotes
    for url in build_protected_resource_metadata_discovery_urls(named, server_url):
        _check_endpoint(url)
        response = await _get(client, create_oauth_metadata_request(url))
        found = await handle_protected_resource_response(response)
        if found is not None:
            wanted = resource_url_from_server_url(server_url)
            if not check_resource_allowed(requested_resource=wanted, configured_resource=str(found.resource)):
                raise McpSignInFailed("The server's metadata is about another server.")
            return found, [str(each) for each in found.authorization_servers], scope
    return None, [], scope


async def _discover_server(client: httpx2.AsyncClient, issuer: str | None, spec: McpServerSpec) -> OAuthMetadata:
    """The metadata of the authorization server, each endpoint on its own origin. Errors: `McpSignInFailed`."""
    expected = issuer or f"{urlsplit(spec.url).scheme}://{urlsplit(spec.url).netloc}"
    _check_endpoint(expected)
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, spec.url):
        is_final, found = await handle_auth_metadata_response(await _get(client, create_oauth_metadata_request(url)))
        if found is not None:
            _check_metadata(found, expected, spec.allowed_issuer)
            return found
        if not is_final:
            break
    raise McpSignInFailed("The server wants a sign-in and does not say where.")


def _check_metadata(found: OAuthMetadata, expected: str, allowed: str) -> None:
    """Check what an authorization server says of itself. Errors: `McpSignInFailed` with the rule that it breaks.

    `allowed`: an issuer, and with it its origin, that an administrator accepts for the server that people sign in at.
    """
    issuer = str(found.issuer)
    if not issuers_match(issuer, expected) and not (allowed and issuers_match(issuer, allowed)):
        raise McpSignInFailed(
            Phrase(
                "The MCP server names the authorization server {named!r}, and its metadata are those of {issuer!r}."
                " Both have to be the same (RFC 8414, section 3.3), or one server could pass for another."
                " An administrator can allow the issuer {issuer!r} for this MCP server.",
                named=expected[:MAX_SHOWN],
                issuer=issuer[:MAX_SHOWN],
            )
        )
    methods = found.code_challenge_methods_supported
    if methods is not None and "S256" not in methods:
        raise McpSignInFailed("The authorization server does not support PKCE.")
    origins = [_origin(urlsplit(each)) for each in (expected, allowed) if each]
    for endpoint in (
        found.authorization_endpoint,
        found.token_endpoint,
        found.registration_endpoint,
        found.revocation_endpoint,
    ):
        if endpoint is None:
            continue
        _check_endpoint(str(endpoint))
        parts = urlsplit(str(endpoint))
        if _origin(parts) not in origins:
            raise McpSignInFailed(
                Phrase(
                    "The authorization server {issuer!r} names the address {endpoint!r}, which is on another origin."
                    " Its addresses have to be on its own origin, so that no other server is given codes and tokens."
                    " An administrator can allow the issuer {endpoint!r} for this MCP server.",
                    issuer=expected[:MAX_SHOWN],
                    endpoint=f"{parts.scheme}://{parts.netloc}"[:MAX_SHOWN],
                )
            )


def _by_hand(spec: McpServerSpec, found: OAuthMetadata, metadata: OAuthClientMetadata) -> OAuthClientInformationFull:
    """The client that a person or an administrator has registered at the authorization server."""
    known = found.token_endpoint_auth_methods_supported or ["client_secret_basic"]  # RFC 8414, section 2
    is_posted = "client_secret_basic" not in known and "client_secret_post" in known
    with_secret = "client_secret_post" if is_posted else "client_secret_basic"
    return OAuthClientInformationFull(
        client_id=spec.client_id,
        client_secret=spec.client_secret or None,
        redirect_uris=metadata.redirect_uris,
        token_endpoint_auth_method=with_secret if spec.client_secret else "none",
    )


async def _register(
    client: httpx2.AsyncClient, found: OAuthMetadata, metadata: OAuthClientMetadata
) -> OAuthClientInformationFull:
    issuer = urlsplit(str(found.issuer))
    request = create_client_registration_request(found, metadata, f"{issuer.scheme}://{issuer.netloc}")
    try:
        registered = await handle_registration_response(await _get(client, request))
        check_registration_usable(registered)
    except OAuthRegistrationError as error:
        raise McpSignInFailed(
            Phrase(
                "The authorization server {issuer!r} does not let this site register by itself. Register it there"
                " by hand, with the redirect address {redirect}. Enter its client ID and secret at the MCP server.",
                issuer=str(found.issuer)[:MAX_SHOWN],
                redirect=", ".join(map(str, metadata.redirect_uris or ())),
            )
        ) from error
    return registered


async def _tokens(held: JSONObject, data: dict[str, str]) -> JSONObject:
    metadata = OAuthMetadata.model_validate(held["metadata"])
    response = await _post(held, str(metadata.token_endpoint), data)
    if response.status_code >= 500 or response.status_code == 429:
        raise OAuthUnreachable
    refusal = _refusal(response)
    if refusal in {"invalid_client", "incorrect_client_credentials"}:
        raise GrantRefused(
            Phrase(
                "The authorization server {issuer!r} does not accept the client ID and secret. Enter them again at the"
                " MCP server, then sign in again.",
                issuer=str(metadata.issuer)[:MAX_SHOWN],
            )
        )
    if response.status_code != 200 or refusal:
        raise GrantRefused
    try:
        tokens = OAuthToken.model_validate_json(response.content)
    except ValidationError as error:
        raise OAuthUnreachable("The authorization server's answer cannot be read.") from error
    found: JSONObject = tokens.model_dump(mode="json", exclude_none=True)
    return found


def _refusal(response: httpx2.Response) -> str:
    """The code of a refusal, also of one with status 200, as GitHub and Slack send it; empty where there is none.

    Sources: RFC 6749, section 5.2; docs.github.com, "Troubleshooting OAuth app access token request errors".
    """
    try:
        said = response.json()
    except ValueError:
        return ""
    return str(said["error"]) if isinstance(said, dict) and said.get("error") and "access_token" not in said else ""


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


def _check_endpoint(url: str) -> None:
    """Refuse what is not https. Errors: `McpSignInFailed`.

    What is in one of the site's private networks may be http: the connection checks that it is.
    """
    scheme = urlsplit(url).scheme
    if scheme != "https" and not (scheme == "http" and mcp_settings.private_networks):
        raise McpSignInFailed("An address of the sign-in is not https.")


def _origin(parts: Any) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _resource_of(server_url: str, resource: ProtectedResourceMetadata | None) -> str:
    return resource_url_from_server_url(server_url) if resource is None else str(resource.resource)
