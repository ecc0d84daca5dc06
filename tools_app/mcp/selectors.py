"""The MCP servers that a conversation has, as people and code see them."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from django.db.models import Q

from thinkproject.kernel.filling import filled
from tools_app.core.mcp.catalogue import unaccepted
from tools_app.core.mcp.servers import McpScope, McpServerView, McpState, McpTransport
from tools_app.errors import McpServerNotFound
from tools_app.models.mcp import McpServer, McpSignIn

HAS_SERVERS: Final = """(
    EXISTS (SELECT 1 FROM think_tools_mcp_server m WHERE m.scope = 'site')
    OR EXISTS (SELECT 1 FROM think_tools_mcp_server m WHERE m.scope = 'user' AND m.owner_id = :owner:)
    OR EXISTS (SELECT 1 FROM think_tools_mcp_server m WHERE m.instance_id = :instance: AND m.instance_id <> '')
)"""
"""Whether there are servers for a conversation, as part of a statement; put in its owner's and its own id."""

SIGN_IN_PATH: Final = "/mcp/oauth/start/"
"""Where a person begins to sign in at a server; its id follows."""


def servers_for(instance_id: str, owner_id: Any) -> list[McpServer]:
    """The servers of a conversation, disabled ones too: its own, its owner's, the site's. One query."""
    return list(McpServer.objects.filter(_condition(instance_id, owner_id)).order_by("created_at", "pk"))


def has_servers(instance_id: str, owner_id: Any) -> bool:
    """Whether there are any. One query."""
    return McpServer.objects.filter(_condition(instance_id, owner_id)).exists()


def own_servers(owner_id: Any) -> list[McpServer]:
    """The servers of a user's conversations all together, and the site's."""
    mine = Q(scope=McpScope.USER, owner_id=owner_id)
    return list(McpServer.objects.filter(mine | Q(scope=McpScope.SITE)).order_by("created_at", "pk"))


def servers_of_person(owner_id: Any) -> list[McpServer]:
    """The servers of each of a user's conversations, of all together, and the site's. One query."""
    mine = Q(owner_id=owner_id) | Q(scope=McpScope.SITE)
    return list(McpServer.objects.filter(mine).order_by("name", "created_at", "pk"))


def find_for(server_id: str, instance_id: str, owner_id: Any) -> McpServer:
    """One of a conversation's servers. Errors: `McpServerNotFound`."""
    server = McpServer.objects.filter(_condition(instance_id, owner_id), pk=server_id).first()
    if server is None:
        raise McpServerNotFound
    return server


def find_own(server_id: str, owner_id: Any) -> McpServer:
    """A server that a user can sign in at: of any conversation of theirs, their own, or the site's.

    Errors: `McpServerNotFound`.
    """
    server = McpServer.objects.filter(Q(owner_id=owner_id) | Q(scope=McpScope.SITE), pk=server_id).first()
    if server is None:
        raise McpServerNotFound
    return server


def signed_in(servers: Sequence[McpServer], owner_id: Any) -> frozenset[str]:
    """Ids of the servers at which a user is signed in. No query where none asks for it."""
    wanted = [server.pk for server in servers if server.needs_sign_in]
    if not wanted or owner_id is None:
        return frozenset()
    rows = McpSignIn.objects.filter(server_id__in=wanted, owner_id=owner_id).exclude(grant="")
    return frozenset(rows.values_list("server_id", flat=True))


def views_for(instance_id: str, owner_id: Any) -> list[McpServerView]:
    """All servers of a conversation as its owner sees them. One query, and one more where people sign in."""
    return views_of(servers_for(instance_id, owner_id), owner_id)


def views_of(servers: Sequence[McpServer], owner_id: Any) -> list[McpServerView]:
    """The same of rows."""
    known = signed_in(servers, owner_id)
    return [view_of(server, is_signed_in=server.pk in known, has_viewer=owner_id is not None) for server in servers]


def view_of(server: McpServer, *, is_signed_in: bool, has_viewer: bool = True) -> McpServerView:
    """A server as one person sees it."""
    catalogue = server.catalogue or {}
    state, auth_url = McpState(server.state), None
    if server.needs_sign_in and not is_signed_in:
        state, auth_url = McpState.AUTHENTICATING, f"{SIGN_IN_PATH}{server.pk}" if has_viewer else None
    elif state is McpState.AUTHENTICATING:
        state = McpState.READY if server.catalogue is not None else McpState.NOT_CONNECTED
    changed = () if server.is_trusted else unaccepted(catalogue, server.accepted or {})
    return filled(
        McpServerView,
        server,
        id=server.pk,
        scope=McpScope(server.scope),
        transport=McpTransport(server.transport),
        url=shown_url(server),
        state=state if server.is_enabled else McpState.NOT_CONNECTED,
        is_reviewed=server.is_reviewed or server.is_trusted,
        auth_url=auth_url,
        error=server.error or None,
        instructions=catalogue.get("instructions") or None,
        capabilities=catalogue.get("capabilities") or {},
        tools=tuple(catalogue.get("tools", ())),
        prompts=tuple(catalogue.get("prompts", ())),
        resources=tuple(catalogue.get("resources", ())),
        skipped=tuple(catalogue.get("skipped", ())),
        unaccepted=changed,
    )


def shown_url(server: McpServer) -> str:
    """The URL without its query, which may hold a secret; of a program its name alone."""
    if server.transport == McpTransport.STDIO:
        return f"stdio:{str(server.command[0]).rpartition('/')[2]}" if server.command else "stdio:"
    parts = urlsplit(server.url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))


def _condition(instance_id: str, owner_id: Any) -> Q:
    condition = Q(scope=McpScope.SITE)
    if owner_id is not None:
        condition |= Q(scope=McpScope.USER, owner_id=owner_id)
    if instance_id:
        condition |= Q(instance_id=instance_id)
    return condition
