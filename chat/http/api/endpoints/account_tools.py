"""API operations on what a person's conversations are connected to, all of them at once."""

from collections.abc import Iterable

from django.http import HttpRequest
from ninja import Router

from chat.http.api.authentication import caller_of
from chat.http.api.endpoints.tools.mcp_servers import shown_servers
from chat.http.api.schemas.account import PlacedExtensionOut, PlacedServerOut
from chat.models import AgentInstance
from tools_app.core.extensions.manifest import parse_manifest
from tools_app.extensions.loaded import with_ban
from tools_app.mcp import selectors
from tools_app.models import Extension
from tools_app.models.extensions import ExtensionLevel

router = Router(tags=["account"])
MOST = 500


@router.get("/account/servers", response=list[PlacedServerOut], operation_id="list_all_mcp_servers")
def server_list(request: HttpRequest) -> list[PlacedServerOut]:
    """The MCP servers of all your conversations, those that all of them have, and the site's; at most 500."""
    user = caller_of(request).user
    rows = selectors.servers_of_person(user.pk)[:MOST]
    titles = _titles(user.pk, (row.instance_id for row in rows))
    return [
        PlacedServerOut(server=shown, instance_id=row.instance_id, title=titles.get(row.instance_id, ""))
        for row, shown in zip(rows, shown_servers(request, rows), strict=True)
    ]


@router.get("/account/extensions", response=list[PlacedExtensionOut], operation_id="list_all_extensions")
def extension_list(request: HttpRequest) -> list[PlacedExtensionOut]:
    """The extensions of all your conversations, and those that all of them have; at most 500."""
    user = caller_of(request).user
    mine = Extension.objects.filter(owner_id=user.pk).exclude(level=ExtensionLevel.SITE)
    rows = list(with_ban(mine).order_by("name", "pk")[:MOST])
    titles = _titles(user.pk, (row.scope for row in rows))
    return [
        PlacedExtensionOut(
            name=row.name,
            description=parse_manifest(row.manifest).description,
            scope="instance" if row.level == ExtensionLevel.INSTANCE else "user",
            enabled=row.enabled,
            is_banned=vars(row)["is_banned"],
            instance_id=row.scope,
            title=titles.get(row.scope, ""),
        )
        for row in rows
    ]


def _titles(owner_id: int, instance_ids: Iterable[str]) -> dict[str, str]:
    """The titles of a person's own conversations by their ids. One query."""
    wanted = {each for each in instance_ids if each}
    return dict(AgentInstance.objects.filter(owner_id=owner_id, pk__in=wanted).values_list("pk", "title"))
