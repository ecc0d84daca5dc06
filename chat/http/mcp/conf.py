"""Settings of the MCP server."""

from thinkproject.kernel.conf import Setting


class McpServerSettings:
    """Read at each use."""

    requests_per_minute = Setting(
        "THINK_MCP_SERVER_REQUESTS_PER_MINUTE",
        600,
        doc="Requests of one user's programs to MCP endpoints in a minute, over all of them; 0: no limit. Turns count "
        "towards `THINK_TURNS_PER_MINUTE` besides.",
    )
    parallel_calls = Setting(
        "THINK_MCP_SERVER_PARALLEL_CALLS",
        10,
        doc="Calls of an agent's tools by one user's programs that may run, or wait for an approval, at one time.",
    )


mcp_server_settings = McpServerSettings()
