"""The tools of a turn that MCP servers have."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from django.utils import timezone

from chat.agent.think import Think
from chat.errors import TurnConfigInvalid
from chat.instances.runs import shares_servers_of
from chat.turns.tools.providers import SeesTexts, ToolRequest
from chat.user_code.call_hook import call_hook, is_overridden
from thinkproject.kernel.aio import db
from tools_app.core.guard.rules import SeenText
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.core.origins import Origin
from tools_app.core.toolset import ToolSource
from tools_app.errors import McpServerInvalid
from tools_app.mcp import rows, selectors
from tools_app.mcp.pool import Target, pool
from tools_app.mcp.rows import Place
from tools_app.mcp.tools import mcp_tools
from tools_app.models.mcp import McpServer

WAIT_SECONDS: Final = 10.0
LISTED_AGE: Final = timedelta(hours=24)
"""How old what is known of a server may be before it is read again beside a turn."""


async def tools_of_servers(request: ToolRequest) -> ToolSource:
    """The tools of the conversation's servers, those of its class first declared. No query where there are none.

    A sub-agent that works for its parent may have the parent's as well.

    Only a turn, which runs in a worker, declares and connects; a preview is given what is known.
    """
    agent, key = request.agent, request.agent.key
    is_turn = bool(agent.instance.turn_id)
    user_id = agent.instance.asked_by or key.owner_id  # whose sign-ins are used
    shared = await db(shares_servers_of, key.instance_id) if key.parent is not None else ()
    if is_overridden(agent, "get_mcp_servers"):
        if is_turn:
            await _declare(agent)
    elif not request.has_mcp_servers and not shared:
        return ()
    instance_ids = (key.instance_id, *shared)
    servers, signed_in = await db(_read, instance_ids, user_id)
    targets = _usable(servers, signed_in, user_id)
    unknown = [target for target in targets if _is_to_be_read(target.server)]
    if is_turn and unknown and await _wait(agent, unknown):
        servers, signed_in = await db(_read, instance_ids, user_id)
        targets = _usable(servers, signed_in, user_id)
    known = [target for target in targets if target.server.catalogue]
    if request.guard is not None:
        await _note_descriptions(request.guard, [target.server for target in known])
    return mcp_tools(known, sampler=request.sampler)


async def _note_descriptions(guard: SeesTexts, servers: Sequence[McpServer]) -> None:
    """Descriptions that no person has looked at are a stranger's text in the context. No statement once it is known."""
    for server in servers:
        if not (server.is_trusted or server.is_reviewed):
            await guard.see([SeenText(Origin.MCP, server.name)], name=f"mcp {server.pk} {server.fingerprint}"[:120])


async def _declare(agent: Think) -> None:
    """Errors: `TurnConfigInvalid` for a declaration that is none."""
    given: Any = await call_hook(agent, "get_mcp_servers")
    specs = [given] if isinstance(given, McpServerSpec) else list(given or ())
    if not agent.key.instance_id:  # nothing is stored of this conversation yet
        return
    place = Place(owner_id=agent.key.owner_id, instance_id=agent.key.instance_id)
    try:
        await db(rows.declare_servers, specs, place)
    except McpServerInvalid as error:
        raise TurnConfigInvalid(f"get_mcp_servers of {type(agent).__name__}: {error.message}") from error


async def _wait(agent: Think, targets: Sequence[Target]) -> bool:
    """Have servers read; whether it was waited for them. They are read on where the time is over."""
    wanted = agent.wait_for_mcp_connections
    tasks = [pool().refresh_soon(target) for target in targets]
    if wanted is False:
        return False
    await asyncio.wait(tasks, timeout=WAIT_SECONDS if wanted is True else float(wanted))
    return True


def _read(instance_ids: Sequence[str], owner_id: Any) -> tuple[list[McpServer], frozenset[str]]:
    found = [server for instance_id in instance_ids for server in selectors.servers_for(instance_id, owner_id)]
    servers = list({server.pk: server for server in found}.values())
    return servers, selectors.signed_in(servers, owner_id)


def _usable(servers: Sequence[McpServer], signed_in: frozenset[str], owner_id: Any) -> list[Target]:
    return [
        Target(server, owner_id)
        for server in servers
        if server.is_enabled and (not server.needs_sign_in or server.pk in signed_in)
    ]


def _is_to_be_read(server: McpServer) -> bool:
    now = timezone.now()
    if server.retry_at is not None and server.retry_at > now:
        return False
    return server.catalogue is None or server.listed_at is None or server.listed_at < now - LISTED_AGE
