"""Settings of MCP servers."""

import ipaddress
from collections.abc import Sequence

from thinkproject.kernel.conf import Setting
from tools_app.fetching.addresses import Network


class McpSettings:
    """Read at each use. They bound what servers of strangers cost."""

    people_add = Setting(
        "THINK_MCP_PEOPLE_ADD",
        True,
        doc="Whether people may add MCP servers to their conversations. Administrators and code always may.",
    )
    servers_per_user = Setting("THINK_MCP_SERVERS_PER_USER", 50, doc="MCP servers that one user may have; 0: no limit.")
    connects_per_minute = Setting(
        "THINK_MCP_CONNECTS_PER_MINUTE",
        30,
        doc="How often within a minute one user may add MCP servers or have them connected to; 0: no limit.",
    )
    private_networks: Setting[list[str]] = Setting(
        "THINK_MCP_PRIVATE_NETWORKS",
        [],
        doc="Networks (`10.0.0.0/8`) whose MCP servers may be reached although they are not public, also by `http`.",
    )
    tools_per_server = Setting("THINK_MCP_TOOLS_PER_SERVER", 100, doc="Tools of one MCP server at most.")
    catalogue_bytes = Setting("THINK_MCP_CATALOGUE_BYTES", 512_000, doc="Bytes of the tools of one MCP server.")
    result_bytes = Setting("THINK_MCP_RESULT_BYTES", 8 * 1024 * 1024, doc="Bytes of one answer of an MCP server.")
    connect_seconds = Setting("THINK_MCP_CONNECT_SECONDS", 15.0, doc="How long connecting to an MCP server may take.")
    start_seconds = Setting(
        "THINK_MCP_START_SECONDS",
        60.0,
        doc="How long the program of an MCP server may take to start: `npx` and `uvx` fetch it first.",
    )
    call_seconds = Setting("THINK_MCP_CALL_SECONDS", 60.0, doc="How long a call of an MCP server's tool may take.")
    idle_seconds = Setting("THINK_MCP_IDLE_SECONDS", 300.0, doc="After how long an unused connection is closed.")
    connections = Setting("THINK_MCP_CONNECTIONS", 64, doc="Connections to MCP servers of one process at most.")
    retry_seconds = Setting(
        "THINK_MCP_RETRY_SECONDS",
        5.0,
        doc="How long a server that failed is left alone; twice as long each further time, up to ten minutes.",
    )

    @property
    def opening_seconds(self) -> float:
        """Seconds that making a connection of any kind may take."""
        return max(self.connect_seconds, self.start_seconds)

    @property
    def private(self) -> Sequence[Network]:
        """The private networks. Errors: `ValueError` for one that is none."""
        return tuple(ipaddress.ip_network(text.strip()) for text in self.private_networks if text.strip())


mcp_settings = McpSettings()
