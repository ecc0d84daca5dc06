"""MCP servers of conversations: who is notified of their changes; connecting and reading in the background."""

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models.functions import Now

from chat.core.durable_names import MCP_FIBER, MCP_READ_FIBER
from chat.errors import QuotaExceeded
from chat.instances.notifications import EVERYONE, McpChanged, group_of, send_notification, user_group
from chat.instances.rows import key_of
from chat.models import AgentInstance
from fibers.models import Fiber
from fibers.services import start_fiber
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.phrases import Phrase
from tools_app.core.mcp.servers import McpScope
from tools_app.errors import McpServerNotFound, McpServerRefused
from tools_app.mcp import rows
from tools_app.mcp.conf import mcp_settings
from tools_app.mcp.pasting import PastedState, Proposed, add_pasted
from tools_app.mcp.rows import Place
from tools_app.models.mcp import McpServer

SHARED_SECONDS: Final = 2
CHANGED: Final[McpChanged] = {"type": "mcp.changed"}


def notify_change(server: McpServer) -> None:
    """Have the clients that see a server read it again."""
    if server.scope == McpScope.SITE:
        send_notification(EVERYONE, CHANGED)
    elif server.scope == McpScope.USER and server.owner_id is not None:
        send_notification(user_group(server.owner_id), CHANGED)
    else:
        instance = AgentInstance.objects.filter(pk=server.instance_id).first()
        if instance is not None:
            send_notification(group_of(key_of(instance)), CHANGED)


def place_of(instance: AgentInstance) -> Place:
    """A conversation as the place of its own servers."""
    return Place(owner_id=instance.owner_id, instance_id=instance.pk)


def connect_soon(server: McpServer, user_id: Any, *, is_repeated: bool = False) -> None:
    """Have a worker connect to a server and read what it offers. In the caller's transaction, if there is one.

    `is_repeated`: a person asks again; requests within the same two seconds share an attempt.
    Errors: `QuotaExceeded` for a user who asks for it too often.
    """
    _check_pace(user_id)
    key = f"mcp:{server.pk}:{user_id}:{int(time.time() // SHARED_SECONDS)}" if is_repeated else None
    start_fiber(MCP_FIBER, {"server_id": server.pk, "user_id": user_id}, key=key, owner_id=user_id)


@transaction.atomic
def import_servers(
    text: str,
    place: Place,
    values: Mapping[str, str],
    *,
    names: Collection[str] | None,
    user_id: Any,
    allows_programs: bool = False,
) -> list[Proposed]:
    """Add the servers of a configuration that can be added, and have workers connect to them. Committed together.

    Errors: `McpServerInvalid` for a text that is none, `QuotaExceeded`.
    """
    found = add_pasted(text, place, values, names=names, allows_programs=allows_programs)
    added = [each.server for each in found if each.state is PastedState.ADDED and each.server is not None]
    _connect_some_soon([server for server in added if server.is_enabled], user_id)
    return found


def _connect_some_soon(servers: Sequence[McpServer], user_id: Any) -> None:
    """Connect to as many as the user may within a minute, at least one; turns connect to the others."""
    if not servers:
        return
    _check_pace(user_id)
    limit = mcp_settings.connects_per_minute
    left = len(servers) if not limit or user_id is None else limit - _connects_lately(user_id)
    for server in servers[:left]:
        start_fiber(MCP_FIBER, {"server_id": server.pk, "user_id": user_id}, owner_id=user_id)


def read_soon(server: McpServer, user_id: Any, wanted: JSONObject) -> Fiber:
    """Have a worker read a content of a server for a user. `wanted`: as `tools_app.mcp.contents.read_content`.

    Errors: `McpServerRefused` for a disabled server; `QuotaExceeded` for a user who asks for it too often.
    """
    if not server.is_enabled:
        raise McpServerRefused("This server is disabled.")
    _check_pace(user_id)
    payload: JSONObject = {"server_id": server.pk, "user_id": user_id, "wanted": wanted}
    return start_fiber(MCP_READ_FIBER, payload, owner_id=user_id)


def find_reading(reading_id: str, server_id: str, user_id: Any) -> Fiber:
    """Find such a reading. Errors: `McpServerNotFound` for what is none of this user's at this server."""
    fiber = Fiber.objects.filter(pk=reading_id, name=MCP_READ_FIBER, owner_id=user_id).first()
    if fiber is None or fiber.payload.get("server_id") != server_id:
        raise McpServerNotFound("There is no such content.")
    return fiber


def _check_pace(user_id: Any) -> None:
    limit = mcp_settings.connects_per_minute
    if not limit or user_id is None:
        return
    if _connects_lately(user_id) >= limit:
        raise QuotaExceeded(
            Phrase("You can connect to MCP servers {limit} times within a minute. Wait a moment.", limit=limit),
            retry_after_seconds=60,
        )


def _connects_lately(user_id: Any) -> int:
    return Fiber.objects.filter(
        owner_id=user_id, name__in=(MCP_FIBER, MCP_READ_FIBER), created_at__gt=Now() - timedelta(minutes=1)
    ).count()


if notify_change not in rows.listeners:
    rows.listeners.append(notify_change)
