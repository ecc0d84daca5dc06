"""MCP servers of an instance: the methods of agents and handles."""

from collections.abc import Mapping, Sequence

from chat.agent.ports import InstancePort
from tools_app.core.mcp.servers import McpServerSpec, McpServerView


class McpServerMethods:
    """Adding, removing and listing MCP servers. See `docs/howto/mcp.md`."""

    instance: InstancePort

    async def add_mcp_server(
        self,
        name: str,
        url: str = "",
        *,
        command: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        is_trusted: bool = False,
    ) -> McpServerView:
        """Let this conversation use an MCP server, at a URL or started by a command, from its next turn on.

        `headers` and `env` may hold secrets: they are stored encrypted. `is_trusted`: believe what the server says of
        its tools, and take changes of them without asking a person. The result says whether it is ready, or where a
        person has to sign in (`auth_url`). Durability: stored when this returns; it connects again after a restart.
        Errors: `McpServerInvalid`, `McpServersFull`.
        """
        spec = McpServerSpec(
            name=name, url=url, command=tuple(command), headers=headers or {}, env=env or {}, is_trusted=is_trusted
        )
        return await self.instance.mcp_servers.add(spec)

    async def remove_mcp_server(self, server_id: str) -> bool:
        """Remove a server of this conversation and everybody's sign-ins at it; false where there is none.

        Servers of the user, of the site and of `get_mcp_servers` are not the conversation's own.
        """
        return await self.instance.mcp_servers.remove(server_id)

    async def list_mcp_servers(self) -> list[McpServerView]:
        """Read the servers that this conversation has: its own, its owner's, the site's. Nothing secret is in them."""
        return await self.instance.mcp_servers.list_all()
