"""Agents with MCP servers, and what tests declare for them."""

from typing import Any

from chat.llm.scripted import ScriptedModel
from chat.think import McpServerSpec, Think
from tests.db.chat.turns.agents import MODELS

DECLARED: list[McpServerSpec] = []
"""What the class with declarations gives."""


class Connected(Think):
    """Uses the servers of its conversation."""

    workspace_tools = False
    wait_for_mcp_connections = True

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]


class Declaring(Connected):
    """Declares servers."""

    def get_mcp_servers(self) -> Any:
        return tuple(DECLARED)


class Closed(Connected):
    """Takes no servers from people."""

    people_add_mcp_servers = False
