"""Agents with MCP servers, and what tests declare for them."""

from typing import Any, ClassVar

from chat.llm.scripted import ScriptedModel
from chat.think import InjectionGuard, McpServerSpec, Origin, Relaxed, Think
from tests.db.chat.turns.agents.everyday import MODELS

DECLARED: list[McpServerSpec] = []
"""What the class with declarations gives."""


class Connected(Think):
    """Uses the servers of its conversation."""

    injection_guard: ClassVar[InjectionGuard] = Relaxed(
        reason="These tests are about servers, not about the guard.", trusts=[Origin.MCP]
    )
    workspace_tools = False
    wait_for_mcp_connections: ClassVar[bool | float] = 60.0  # a busy machine starts programs slowly

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]


class Declaring(Connected):
    """Declares servers."""

    def get_mcp_servers(self) -> Any:
        return tuple(DECLARED)


class Closed(Connected):
    """Takes no servers from people."""

    people_add_mcp_servers = False


class Wary(Declaring):
    """Keeps the guard as it is."""

    injection_guard = InjectionGuard()


class Hurried(Declaring):
    """Waits for servers, but not for long."""

    wait_for_mcp_connections: ClassVar[bool | float] = 0.2
