"""Agents that programs use over MCP: one offers itself and some tools, one itself alone, and one nothing."""

import asyncio

from chat.think import Think, Tool, ToolContext, action, client_tool, tool
from tests.acceptance.desk.working import count


@tool(title="Sum", read_only=True)
def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


@tool
async def take_time(seconds: float, context: ToolContext) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)  # a tool that takes as long as it is asked to
    return f"took {seconds:g} in {context.instance_name}"


@tool(needs_approval=True, title="Payment")
def pay_out(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


@tool
def fail() -> None:
    """Always fail."""
    raise LookupError("no such thing")


@tool
def secret_plan() -> str:
    """Tell what programs must not know."""
    return "the plan"


@action(permissions=["think_chat.never_granted"])
def forbidden() -> str:
    """Do what this person may not do."""
    return "done"


class Counter(Think):
    """Offers itself and its tools, but for one."""

    title = "Counter"
    description = "Counts and pays."
    mcp_server = ("*", "!secret_*", "!bash")

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    def get_tools(self) -> list[Tool]:
        """Give all of them."""
        browser = client_tool("locate_me", "Ask the browser where it is.")
        return [add, take_time, pay_out, fail, secret_plan, forbidden, count, browser]


class Listener(Think):
    """Offers itself alone."""

    mcp_server = True
    workspace_tools = False

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"


class Recluse(Think):
    """Offers nothing."""

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"
