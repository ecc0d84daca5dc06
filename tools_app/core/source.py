"""The sources that an agent's tools come from: those of its class, and those that others bring."""

from enum import StrEnum


class Source(StrEnum):
    """A source of tools. The order of the members is the order of the merge (`tools_app.core.tool_sources`)."""

    WORKSPACE = "workspace"  # files and the shell over them
    SCHEDULES = "schedules"  # of the conversation
    AGENT = "agent"  # `get_tools()`, and what `before_turn` adds
    EXTENSIONS = "extensions"
    SESSION = "session"  # the conversation's context blocks
    SKILLS = "skills"
    MCP = "mcp"
    CLIENT = "client"  # of the client that asked last
    CALLER = "caller"  # of the program that asked for this turn


OF_CLIENTS = frozenset({Source.CLIENT, Source.CALLER})
"""Sources whose tools are run outside of the server, and never take the place of the server's."""

OF_OTHERS = OF_CLIENTS | {Source.EXTENSIONS, Source.MCP}
"""Sources whose tools, and the names of these, are not the class's own."""
