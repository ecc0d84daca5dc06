"""A worker that dies anywhere around a call through another tool: one effect, of the tool that was called."""

import json
from dataclasses import replace
from typing import Any

import pytest

from chat.crashing.everywhere import CrashEverywhere
from chat.think import Think, Tool, ToolContext, tool
from tools_app.core.deferral import CALL

pytestmark = pytest.mark.asyncio

SENT: dict[str, str] = {}
"""Letters by the key that must differ from one to the next."""


@tool
def post(context: ToolContext, to: str) -> str:
    """Send a letter."""
    SENT.setdefault(context.idempotency_key, f"{context.tool_name} to {to}")
    return f"sent to {to}"


@tool(needs_approval=True)
def post_asked(context: ToolContext, to: str) -> str:
    """Send a letter that a person has to approve."""
    return str(post(context, to))


class ManyPosts(Think):
    """Sends letters by one of many tools."""

    workspace_tools = False
    searched_tools = ("post*",)

    def get_model(self) -> Any:
        return "default"

    def get_tools(self) -> list[Tool]:
        return [post_asked, *(replace(post, name=f"post_{number}") for number in range(40))]


def through(name: str, to: str) -> str:
    return f"call tool {CALL} {json.dumps({'name': name, 'arguments': {'to': to}})}"


@pytest.mark.parametrize("name", ["post_7", "post_asked"])
async def test_a_letter_is_sent_once(crash_everywhere: CrashEverywhere, name: str) -> None:
    SENT.clear()
    script = f"{through(name, 'Ann')}\nsay: {{result}}"
    crashes = await crash_everywhere(ManyPosts, script, effects=lambda: list(SENT.values()))
    assert set(SENT.values()) == {f"{name} to Ann"}
    assert any(f"tool:{name}:" in point.key for points in crashes.points for point in points)
