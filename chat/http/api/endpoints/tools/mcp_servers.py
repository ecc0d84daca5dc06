"""API operations on MCP servers: of one conversation, and of all conversations of the caller.

Those of the site are listed and can be signed in at; administrators change them. Programs are never added here.
"""

from typing import Any

from django.db import transaction
from django.http import HttpRequest
from ninja import Router, Status

from chat.access.auth import open_instance
from chat.agent.registry import get_agent_class, is_served
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.mcp import McpServerIn, McpServerOut, McpServerPatch, McpSkippedOut, McpToolOut
from chat.mcp_servers.changes import connect_soon, place_of
from chat.mcp_servers.service import may_add, remove
from chat.models import AgentInstance
from thinkproject.kernel.aio import db
from thinkproject.kernel.filling import filled
from tools_app.core.mcp.servers import McpScope, McpServerSpec, McpServerView
from tools_app.errors import McpServerNotFound, McpServerRefused
from tools_app.mcp import rows, selectors
from tools_app.mcp.conf import mcp_settings
from tools_app.mcp.rows import Place
from tools_app.mcp.sign_in import CALLBACK_PATH, sign_out
from tools_app.models.mcp import McpServer

router = Router(tags=["mcp"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])
_CHANGES = declares(403, 404, 409, 429)
_LIST, _ONE = "/instances/{instance_id}/mcp-servers", "/instances/{instance_id}/mcp-servers/{server_id}"


@router.get(_LIST, response=list[McpServerOut], operation_id="list_mcp_servers")
async def mcp_list(request: HttpRequest, instance_id: str) -> list[McpServerOut]:
    """The MCP servers that a conversation has: its own, yours, and the site's."""
    user = caller_of(request).user

    def read() -> list[McpServer]:
        return selectors.servers_for(open_instance(user, instance_id).pk, user.pk)

    return await db(lambda: shown_servers(request, read()))


@router.post(_LIST, response=McpServerOut, operation_id="add_mcp_server", openapi_extra=_CHANGES)
async def mcp_add(request: HttpRequest, instance_id: str, data: McpServerIn) -> McpServerOut:
    """Let a conversation use a server. A worker connects to it; its state says what came of that.

    A server of this name with this URL is there already: then it is returned.
    """
    user = caller_of(request).user

    def add() -> McpServer:
        instance = open_instance(user, instance_id)
        _check_may_add(instance)
        return _add(data, place_of(instance), user.pk)

    return await db(lambda: shown_servers(request, [add()])[0])


@router.patch(_ONE, response=McpServerOut, operation_id="change_mcp_server", openapi_extra=_CHANGES)
async def mcp_change(request: HttpRequest, instance_id: str, server_id: str, data: McpServerPatch) -> McpServerOut:
    """Enable or disable one of a conversation's servers, trust it, accept its tools, give it a client for sign-ins."""
    return await db(lambda: shown_servers(request, [_change(_own(request, instance_id, server_id), data)])[0])


@router.delete(_ONE, response={204: None}, operation_id="remove_mcp_server", openapi_extra=_CHANGES)
async def mcp_remove(request: HttpRequest, instance_id: str, server_id: str) -> object:
    """Remove a server with your sign-in at it."""
    return await _remove(await db(_own, request, instance_id, server_id))


@router.post(_ONE + "/connect", response=McpServerOut, operation_id="connect_mcp_server", openapi_extra=_CHANGES)
async def mcp_connect(request: HttpRequest, instance_id: str, server_id: str) -> McpServerOut:
    """Have a worker connect again, now. Where a person has to sign in, `auth_url` says where."""
    user = caller_of(request).user

    def connect() -> McpServer:
        instance = open_instance(user, instance_id)
        return _connect(selectors.find_for(server_id, instance.pk, user.pk), user.pk)

    return await db(lambda: shown_servers(request, [connect()])[0])


@router.get("/mcp-servers", response=list[McpServerOut], operation_id="list_own_mcp_servers")
async def own_mcp_list(request: HttpRequest) -> list[McpServerOut]:
    """The MCP servers that all your conversations have, and the site's."""
    return await db(lambda: shown_servers(request, selectors.own_servers(caller_of(request).user.pk)))


@router.post("/mcp-servers", response=McpServerOut, operation_id="add_own_mcp_server", openapi_extra=_CHANGES)
async def own_mcp_add(request: HttpRequest, data: McpServerIn) -> McpServerOut:
    """Let all your conversations use a server."""

    def add() -> McpServer:
        if not mcp_settings.people_add:
            raise McpServerRefused
        user_id = caller_of(request).user.pk
        return _add(data, Place(owner_id=user_id), user_id)

    return await db(lambda: shown_servers(request, [add()])[0])


@router.patch(
    "/mcp-servers/{server_id}", response=McpServerOut, operation_id="change_own_mcp_server", openapi_extra=_CHANGES
)
async def own_mcp_change(request: HttpRequest, server_id: str, data: McpServerPatch) -> McpServerOut:
    """Enable or disable one of your servers, trust it, accept its tools, give it a client for sign-ins."""
    return await db(lambda: shown_servers(request, [_change(_of_user(request, server_id), data)])[0])


@router.delete(
    "/mcp-servers/{server_id}", response={204: None}, operation_id="remove_own_mcp_server", openapi_extra=_CHANGES
)
async def own_mcp_remove(request: HttpRequest, server_id: str) -> object:
    """Remove one of your servers with your sign-in at it."""
    return await _remove(await db(_of_user, request, server_id))


@router.post(
    "/mcp-servers/{server_id}/connect",
    response=McpServerOut,
    operation_id="connect_own_mcp_server",
    openapi_extra=_CHANGES,
)
async def own_mcp_connect(request: HttpRequest, server_id: str) -> McpServerOut:
    """Have a worker connect again to one of your servers or the site's, now."""
    user_id = caller_of(request).user.pk
    return await db(lambda: shown_servers(request, [_connect(selectors.find_own(server_id, user_id), user_id)])[0])


@router.delete("/mcp-servers/{server_id}/sign-in", response={204: None}, operation_id="sign_out_of_mcp_server")
async def mcp_sign_out(request: HttpRequest, server_id: str) -> object:
    """Sign out at a server: the tokens are revoked there and forgotten here."""
    user_id = caller_of(request).user.pk
    server = await db(selectors.find_own, server_id, user_id)
    await sign_out(server.pk, user_id)
    await db(rows.changed, server)
    return Status(204, None)


def _check_may_add(instance: AgentInstance) -> None:
    if not is_served(instance.agent) or not may_add(get_agent_class(instance.agent)):
        raise McpServerRefused


@transaction.atomic
def _add(data: McpServerIn, place: Place, user_id: Any) -> McpServer:
    server, _is_new = rows.add_server(McpServerSpec(**data.dict()), place)
    connect_soon(server, user_id)
    return server


def _own(request: HttpRequest, instance_id: str, server_id: str) -> McpServer:
    """One of the user's own servers that a conversation has. Errors: `McpServerNotFound`, `McpServerRefused`."""
    user = caller_of(request).user
    instance = open_instance(user, instance_id)
    server = selectors.find_for(server_id, instance.pk, user.pk)
    if server.scope == McpScope.SITE:
        raise McpServerRefused
    return server


def _of_user(request: HttpRequest, server_id: str) -> McpServer:
    user_id = caller_of(request).user.pk
    server = selectors.find_own(server_id, user_id)
    if server.scope == McpScope.SITE:
        raise McpServerRefused
    if server.scope != McpScope.USER:
        raise McpServerNotFound
    return server


@transaction.atomic
def _change(server: McpServer, data: McpServerPatch) -> McpServer:
    if data.accept is not None:
        server = rows.accept_tools(server, data.accept)
    if data.client_id is not None or data.client_secret is not None:
        client_id = server.client_id if data.client_id is None else data.client_id
        server = rows.set_client(server, client_id, data.client_secret or "")
    return rows.set_server(server, is_enabled=data.enabled, is_trusted=data.trusted)


@transaction.atomic
def _connect(server: McpServer, user_id: Any) -> McpServer:
    server = rows.begin_again(server)
    connect_soon(server, user_id, is_repeated=True)
    return server


async def _remove(server: McpServer) -> object:
    if server.is_declared:
        raise McpServerRefused("Code declares this server. Disable it instead.")
    await remove(server)
    return Status(204, None)


def shown_servers(request: HttpRequest, servers: list[McpServer]) -> list[McpServerOut]:
    """Servers as the caller sees them. One query, and one more where people sign in."""
    user_id = caller_of(request).user.pk
    views = selectors.views_of(servers, user_id)
    return [_out(request, view, server) for view, server in zip(views, servers, strict=True)]


def _out(request: HttpRequest, view: McpServerView, server: McpServer) -> McpServerOut:
    auth_url = None if view.auth_url is None else request.build_absolute_uri(view.auth_url)
    return filled(
        McpServerOut,
        view,
        scope=view.scope.value,
        transport=view.transport.value,
        state=view.state.value,
        enabled=view.is_enabled,
        trusted=view.is_trusted,
        reviewed=view.is_reviewed,
        can_change=view.scope is not McpScope.SITE,
        auth_url=auth_url,
        signed_in=server.needs_sign_in and auth_url is None,
        redirect_url=request.build_absolute_uri(CALLBACK_PATH),
        fingerprint=server.fingerprint,
        tools=[
            McpToolOut(
                name=tool["name"],
                title=tool.get("title", ""),
                description=tool.get("description", ""),
                input_schema=tool["inputSchema"],
                read_only=(tool.get("annotations") or {}).get("readOnlyHint"),
                accepted=tool["name"] not in view.unaccepted,
            )
            for tool in view.tools
        ],
        prompts=list(view.prompts),
        resources=list(view.resources),
        skipped=[McpSkippedOut(name=item["name"], reason=item["reason"]) for item in view.skipped],
    )
