"""Settings of MCP servers."""

import ipaddress
from collections.abc import Sequence
from typing import Final

from thinkproject.kernel.conf import MachineLimit, PeopleLimit, Setting
from tools_app.fetching.addresses import Network

CONNECT_SECONDS: Final = 15.0
"""For a connection over the network."""


class McpSettings:
    """Read at each use. They bound what servers of strangers cost."""

    people_add = Setting("THINK_MCP_PEOPLE_ADD", True)
    """Whether people may add MCP servers to their conversations. Administrators and code always may. Switch it off
    where you choose the servers."""

    private_networks: Setting[list[str]] = Setting("THINK_MCP_PRIVATE_NETWORKS", [])
    """Networks (`10.0.0.0/8`) whose MCP servers and webhooks of streams may be reached although they are not public,
    also by `http`. Set it for servers of your own."""

    servers_per_user = PeopleLimit("THINK_MCP_SERVERS_PER_USER", 50)
    """MCP servers that one user may have; 0: no limit. Lower it where strangers sign up."""

    connects_per_minute = PeopleLimit("THINK_MCP_CONNECTS_PER_MINUTE", 30)
    """How often within a minute one user may add MCP servers or have them connected to; 0: no limit. Lower it where
    strangers sign up."""

    tools_per_server = MachineLimit("THINK_MCP_TOOLS_PER_SERVER", 100)
    """Tools of one MCP server at most. Raise it for servers that have more."""

    start_seconds = MachineLimit("THINK_MCP_START_SECONDS", 60.0)
    """How long the program of an MCP server may take to start: `npx` and `uvx` fetch it first. Raise it where the
    network is slow."""

    call_seconds = MachineLimit("THINK_MCP_CALL_SECONDS", 60.0)
    """How long a call of an MCP server's tool may take. Raise it for tools that work long."""

    connections = MachineLimit("THINK_MCP_CONNECTIONS", 64)
    """Connections to MCP servers of one process at most. Raise it where many people use servers of their own."""

    @property
    def opening_seconds(self) -> float:
        """Seconds that making a connection of any kind may take."""
        return max(CONNECT_SECONDS, self.start_seconds)

    @property
    def private(self) -> Sequence[Network]:
        """The private networks. Errors: `ValueError` for one that is none."""
        return tuple(ipaddress.ip_network(text.strip()) for text in self.private_networks if text.strip())


mcp_settings = McpSettings()
