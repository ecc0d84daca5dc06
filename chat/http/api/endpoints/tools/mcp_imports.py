"""API operations on pasted configurations of MCP servers: a preview, and once it is confirmed, the servers."""

from collections.abc import Iterable

from django.http import HttpRequest
from ninja import Router

from chat.access.auth import open_instance
from chat.agent.registry import get_agent_class, is_served
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.mcp import McpImportedOut, McpImportIn, McpImportOut, McpVariableOut
from chat.mcp_servers.changes import import_servers, place_of
from chat.mcp_servers.service import may_add
from thinkproject.kernel.aio import db
from thinkproject.kernel.languages import translate
from tools_app.core.mcp.variables import Variable
from tools_app.errors import McpServerRefused
from tools_app.mcp.conf import mcp_settings
from tools_app.mcp.pasting import PastedState, Proposed, propose
from tools_app.mcp.rows import Place

router = Router(tags=["mcp"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])
_CHANGES = declares(403, 404, 429)


@router.post(
    "/instances/{instance_id}/mcp-servers/import",
    response=McpImportOut,
    operation_id="import_mcp_servers",
    openapi_extra=_CHANGES,
)
async def mcp_import(request: HttpRequest, instance_id: str, data: McpImportIn) -> McpImportOut:
    """Let a conversation use the servers of a configuration that you paste. Nothing is added unless it is confirmed."""
    user = caller_of(request).user

    def run() -> McpImportOut:
        instance = open_instance(user, instance_id)
        if not is_served(instance.agent) or not may_add(get_agent_class(instance.agent)):
            raise McpServerRefused
        return _imported(data, place_of(instance), user.pk)

    return await db(run)


@router.post(
    "/mcp-servers/import", response=McpImportOut, operation_id="import_own_mcp_servers", openapi_extra=_CHANGES
)
async def own_mcp_import(request: HttpRequest, data: McpImportIn) -> McpImportOut:
    """Let all your conversations use the servers of a configuration. Nothing is added unless it is confirmed."""
    user_id = caller_of(request).user.pk

    def run() -> McpImportOut:
        if not mcp_settings.people_add:
            raise McpServerRefused
        return _imported(data, Place(owner_id=user_id), user_id)

    return await db(run)


def _imported(data: McpImportIn, place: Place, user_id: object) -> McpImportOut:
    """Programs are never added here: these are for administrators."""
    if data.confirmed:
        found = import_servers(data.text, place, data.values, names=data.names, user_id=user_id)
    else:
        found = propose(data.text, place, data.values, allows_programs=False)
    return McpImportOut(
        added=sum(each.state is PastedState.ADDED for each in found),
        servers=[_shown(each) for each in found],
        variables=[_variable(each) for each in _all_variables(found)],
    )


def _all_variables(found: Iterable[Proposed]) -> list[Variable]:
    """Each once; one that some server needs is needed."""
    known: dict[str, Variable] = {}
    for variable in (variable for each in found for variable in each.variables):
        if variable.key not in known or variable.default is None:
            known[variable.key] = variable
    return list(known.values())


def _shown(proposed: Proposed) -> McpImportedOut:
    pasted = proposed.pasted
    return McpImportedOut(
        name=pasted.name,
        transport="stdio" if pasted.command else "http",
        address=" ".join(pasted.command) or _without_query(pasted.url),
        state=proposed.state.value,
        reason=translate(proposed.reason or ""),
        enabled=pasted.is_enabled,
        headers=[*pasted.headers, *pasted.env],
        variables=[each.key for each in proposed.variables],
        missing=list(proposed.missing),
        exposed=list(proposed.exposes),
        ignored=list(pasted.ignored),
        id=None if proposed.server is None else proposed.server.pk,
    )


def _variable(variable: Variable) -> McpVariableOut:
    return McpVariableOut(
        key=variable.key,
        description=variable.description,
        secret=variable.is_secret,
        default=variable.default,
        options=list(variable.options),
    )


def _without_query(url: str) -> str:
    return url.partition("?")[0].partition("#")[0]
