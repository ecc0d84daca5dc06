"""The MCP servers of an instance: what agents and their clients do with them."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from chat.agent.base import Agent, InstanceKey
from chat.agent.think import Think
from chat.instances.notifications import group_of
from chat.instances.rows import ensure_instance, find_instance
from chat.instances.waiting import wait_until
from chat.mcp_servers.changes import connect_soon, place_of
from chat.runtime.state import is_read_only
from fibers.context import current_fiber
from thinkproject.kernel.aio import db
from tools_app.core.mcp.servers import McpServerSpec, McpServerView, McpState
from tools_app.errors import McpServerNotFound, McpServerRefused, McpUnavailable
from tools_app.mcp import rows, selectors
from tools_app.mcp.conf import CONNECT_SECONDS, mcp_settings
from tools_app.mcp.pool import Target, pool
from tools_app.mcp.sign_in import sign_out_all
from tools_app.models.mcp import McpServer

_SETTLED: Final = frozenset({McpState.READY, McpState.FAILED, McpState.AUTHENTICATING})
_MARGIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class InstanceMcpServers:
    """The MCP servers of an instance, for its agent and code. `agent`: gives its agent."""

    key: InstanceKey
    agent: Callable[[], Awaitable[Agent]]

    async def add(self, spec: McpServerSpec, *, by_client: bool = False) -> McpServerView:
        """Add a server, try to connect, and say what came of it."""
        if by_client:
            await check_by_client(await self.agent())
        server = await db(_add, self.key, spec, by_code=not by_client)
        return await connected(self.key, server)

    async def remove(self, server_id: str, *, by_client: bool = False) -> bool:
        """Remove a server of the conversation, its sign-ins first."""
        if by_client:
            await check_by_client(await self.agent())
        server = await db(_find_removable, self.key, server_id)
        if server is None:
            return False
        await remove(server)
        return True

    async def list_all(self) -> list[McpServerView]:
        """Read all servers that the conversation has."""
        return await db(views, self.key)


async def check_by_client(agent: Agent) -> None:
    """Errors: `McpServerRefused` where a client's owner may not change servers of this conversation."""
    if not may_add(type(agent)) or await is_read_only(agent):
        raise McpServerRefused


def may_add(agent: type[Agent]) -> bool:
    """Whether the owner of a conversation with this agent may add and remove servers."""
    return mcp_settings.people_add and issubclass(agent, Think) and agent.people_add_mcp_servers


async def remove(server: McpServer) -> None:
    """Sign everybody out at a server, and remove it."""
    await sign_out_all(server.pk)
    await db(rows.remove_server, server)
    await pool().drop(server)


async def connected(key: InstanceKey, server: McpServer) -> McpServerView:
    """The server once it is known whether it can be used, or as it is after a while."""
    if current_fiber() is not None:  # this is a worker
        with suppress(McpUnavailable):  # noted in its row
            await pool().refresh(Target(server, key.owner_id), insists=True)
        return await db(_view, server.pk, key.owner_id)

    async def is_settled() -> bool:
        return (await db(_view, server.pk, key.owner_id)).state in _SETTLED

    await db(connect_soon, server, key.owner_id)
    seconds = CONNECT_SECONDS + _MARGIN_SECONDS
    await wait_until(is_settled, group=group_of(key), timeout_seconds=seconds)
    return await db(_view, server.pk, key.owner_id)


def views(key: InstanceKey) -> list[McpServerView]:
    """The servers of an address; those of its owner and of the site before its first write."""
    instance_id = key.instance_id
    if not instance_id:
        instance = find_instance(key)
        instance_id = "" if instance is None else instance.pk
    return selectors.views_for(instance_id, key.owner_id)


def _add(key: InstanceKey, spec: McpServerSpec, *, by_code: bool) -> McpServer:
    server, _is_new = rows.add_server(spec, place_of(ensure_instance(key)), allows_programs=by_code)
    return server


def _find_removable(key: InstanceKey, server_id: str) -> McpServer | None:
    instance = find_instance(key)
    server = McpServer.objects.filter(pk=server_id).first()
    if instance is None or server is None or server.instance_id != instance.pk or server.is_declared:
        return None
    return server


def _view(server_id: str, owner_id: Any) -> McpServerView:
    server = McpServer.objects.filter(pk=server_id).first()
    if server is None:
        raise McpServerNotFound
    return selectors.views_of([server], owner_id)[0]
