"""The offer of an agent to other programs, over the Model Context Protocol. See `docs/howto/mcp-server.md`."""

from collections.abc import Sequence
from typing import ClassVar


class McpServerAttributes:
    """The class attributes of `Think` that offer it at `/mcp/{route name}`."""

    mcp_server: ClassVar[bool | Sequence[str]] = False
    """Whether programs that a person has authorised may talk to the agent as an MCP server: `True` offers the tool
    `chat` and the person's conversations. Names and patterns, as in `enabled_tools`, offer tools of the class besides,
    and those of extensions and servers where a pattern names their source (`"mcp:notes_*"`): a program that calls one
    gets what a model would, after the same hooks and approvals."""
