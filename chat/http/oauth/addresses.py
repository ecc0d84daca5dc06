"""Addresses of the endpoints for programs, and their metadata for clients (RFC 8414, RFC 9728)."""

from typing import Final
from urllib.parse import quote, urlencode

from django.core import signing

from chat.access.oauth.scopes import Scope
from chat.agent.registry import list_agents, registered_classes
from chat.agent.think import Think
from thinkproject.kernel.jsonvalue import JSONObject

ENDPOINT: Final = "/mcp/"
RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"
SALT: Final = "think.oauth.consent"
"""Of the signature of a request that is shown to a person."""
AUTHORIZE, CONSENT, TOKEN, REGISTER, REVOKE = (
    f"/oauth/{name}" for name in ("authorize", "consent", "token", "register", "revoke")
)


def consent_page(request: JSONObject) -> str:
    """The address of the page that shows a person a program's request, or what is wrong with it."""
    return f"{CONSENT}?{urlencode({'request': signing.dumps(request, salt=SALT, compress=True)})}"


def offered_agents() -> dict[str, type[Think]]:
    """The classes that programs may use, by route name."""
    served = registered_classes()
    return {cls.route_name(): cls for cls in served if issubclass(cls, Think) and cls.mcp_server}


def title_of(name: str) -> str:
    """The title of an agent for people; its route name where it is gone."""
    return next((agent.title for agent in list_agents() if agent.name == name), name)


def resource_of(origin: str, agent: str) -> str:
    """The address of an agent's endpoint, which is the audience of its tokens."""
    return f"{origin}{ENDPOINT}{quote(agent, safe='')}"


def agent_of(origin: str, resource: str) -> str | None:
    """The route name of the agent that a program asks for, where programs may use it."""
    return next((name for name in offered_agents() if resource_of(origin, name) == resource.rstrip("/")), None)


def resource_metadata(origin: str, agent: str) -> JSONObject:
    """The protected resource's metadata."""
    return {
        "resource": resource_of(origin, agent),
        "authorization_servers": [origin],
        "scopes_supported": [scope.value for scope in Scope],
        "bearer_methods_supported": ["header"],
        "resource_name": title_of(agent),
    }


def server_metadata(origin: str) -> JSONObject:
    """The authorization server's metadata. Clients have no secrets, so PKCE with S256 is a must."""
    return {
        "issuer": origin,
        "authorization_endpoint": origin + AUTHORIZE,
        "token_endpoint": origin + TOKEN,
        "registration_endpoint": origin + REGISTER,
        "revocation_endpoint": origin + REVOKE,
        "scopes_supported": [scope.value for scope in Scope],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }


def challenge(origin: str, agent: str, error: str = "") -> str:
    """The `WWW-Authenticate` header of a refusal: where a program learns how to be authorised."""
    metadata = f"{origin}{RESOURCE_METADATA}{ENDPOINT}{quote(agent, safe='')}"
    parts = [f'resource_metadata="{metadata}"', f'scope="{" ".join(scope.value for scope in Scope)}"']
    return "Bearer " + ", ".join([f'error="{error}"', *parts] if error else parts)
