"""Settings of the MCP server."""

from thinkproject.kernel.conf import PeopleLimit


class McpServerSettings:
    """Read at each use."""

    requests_per_minute = PeopleLimit("THINK_MCP_SERVER_REQUESTS_PER_MINUTE", 600)
    """Requests of one user's programs to MCP endpoints in a minute, over all of them; 0: no limit. Turns count towards
    `THINK_TURNS_PER_MINUTE` besides. Raise it for programs that ask often."""

    parallel_calls = PeopleLimit("THINK_MCP_SERVER_PARALLEL_CALLS", 10)
    """Calls of an agent's tools by one user's programs that may run, or wait for an approval, at one time. Raise it for
    programs that call many tools at once."""


mcp_server_settings = McpServerSettings()
