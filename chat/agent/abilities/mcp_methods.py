"""MCP servers of a conversation: the methods of agents and handles, and what a class declares about them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, cast

from chat.agent.callables import client_callable
from chat.errors import CallRefused
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.mcp.servers import McpServerSpec, McpServerView


class McpOperations(Protocol):
    """The operations on a conversation's MCP servers, as the methods call them."""

    async def add_mcp_server(self, spec: McpServerSpec, *, agent: Any = None) -> McpServerView:
        """Add a server and try to connect. `agent`: where a client asked for it."""
        ...

    async def remove_mcp_server(self, server_id: str, *, agent: Any = None) -> bool:
        """Remove a server of the conversation."""
        ...

    async def list_mcp_servers(self) -> list[McpServerView]:
        """Read all servers that the conversation has."""
        ...


class McpServerMethods:
    """Adding, removing and listing MCP servers. See `docs/howto/mcp.md`."""

    host: Any

    @property
    def _mcp(self) -> McpOperations:
        return cast("McpOperations", self.host)

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
        return await self._mcp.add_mcp_server(spec)

    async def remove_mcp_server(self, server_id: str) -> bool:
        """Remove a server of this conversation and everybody's sign-ins at it; false where there is none.

        Servers of the user, of the site and of `get_mcp_servers` are not the conversation's own.
        """
        return await self._mcp.remove_mcp_server(server_id)

    async def list_mcp_servers(self) -> list[McpServerView]:
        """Read the servers that this conversation has: its own, its owner's, the site's. Nothing secret is in them."""
        return await self._mcp.list_mcp_servers()


class McpMethods(McpServerMethods):
    """The declarations of a class about MCP servers, and the methods that its clients may call."""

    wait_for_mcp_connections: ClassVar[bool | float] = False
    """Whether a turn waits for servers whose tools are not known yet: `True` for at most 10 seconds, a number for at
    most as many. The turn goes on without those that are late. Tools that are known are offered without waiting."""

    people_add_mcp_servers: ClassVar[bool] = True
    """Whether the owner of a conversation may add servers to it, by the API or a client's call; the site may say no to
    all (`THINK_MCP_PEOPLE_ADD`). Code always may."""

    def get_mcp_servers(self) -> Any:
        """Declare the servers that conversations with this agent have: an iterable of `McpServerSpec`. Runs each turn.

        What they say of their tools is believed only where the declaration has `is_trusted`. May be sync or async.
        """
        return ()

    @client_callable(name="addMcpServer")
    async def add_mcp_server_by_client(
        self, name: str, url: str, options: dict[str, Any] | None = None, *_ignored: Any
    ) -> JSONObject:
        """Add a server of the network for a client. Gives `id`, `state` and, where a person signs in, `authUrl`."""
        given = options or {}
        transport = given.get("transport")
        headers = given.get("headers") or (transport.get("headers") if isinstance(transport, dict) else None) or {}
        if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
            raise CallRefused("The headers of a server are texts by name.")
        view = await self._mcp.add_mcp_server(McpServerSpec(name=name, url=url, headers=headers), agent=self)
        found: JSONObject = {"id": view.id, "state": view.state.value}
        return found if view.auth_url is None else {**found, "authUrl": view.auth_url}

    @client_callable(name="removeMcpServer")
    async def remove_mcp_server_by_client(self, server_id: str) -> None:
        """Remove a server for a client."""
        await self._mcp.remove_mcp_server(server_id, agent=self)
