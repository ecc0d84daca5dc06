"""The declarations of a class that chats about MCP servers, and the methods that its clients may call."""

from typing import Any, ClassVar

from chat.agent.callables import client_callable
from chat.agent.methods.mcp_servers import McpServerMethods
from chat.errors import CallRefused
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.mcp.servers import McpServerSpec


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
        view = await self.instance.mcp_servers.add(McpServerSpec(name=name, url=url, headers=headers), by_client=True)
        found: JSONObject = {"id": view.id, "state": view.state.value}
        return found if view.auth_url is None else {**found, "authUrl": view.auth_url}

    @client_callable(name="removeMcpServer")
    async def remove_mcp_server_by_client(self, server_id: str) -> None:
        """Remove a server for a client."""
        await self.instance.mcp_servers.remove(server_id, by_client=True)
