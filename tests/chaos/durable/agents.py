"""Agents of the chaos run of durable work, served through `THINK_APPS`. Each effect is a line in a ledger outside.

The ledger stands for a system that knows idempotency keys: lines of one key are one effect.
"""

import json
import os
import time
from typing import Any, ClassVar

from django.contrib.auth.models import Group

from chat.think import AgentReference, Think, Tool, ToolContext, action, tool
from chat.tools.durable import make_durable_tool
from fibers.context import current_fiber

LEDGER = "CHAOS_LEDGER"
PATIENCE_SECONDS = 600.0  # faults make everything slow, and a wait that is over is no fault


def write(what: str, key: str, **more: Any) -> None:
    """Append a line, in one system call."""
    fiber = current_fiber()
    line = {
        "what": what,
        "key": key,
        "at": time.time(),
        "fence": fiber.fence if fiber else 0,
        "pid": os.getpid(),
        **more,
    }
    handle = os.open(os.environ[LEDGER], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"{json.dumps(line)}\n".encode())
    finally:
        os.close(handle)


@tool
async def pay(what: str, context: ToolContext) -> str:
    """Pay under a key: may run again."""
    write(what, context.idempotency_key)
    return f"paid {what}"


@action
def order(what: str, context: ToolContext) -> str:
    """Order, at most once."""
    write(what, context.idempotency_key)
    return f"ordered {what}"


@tool(reruns=False)
async def post(what: str, context: ToolContext) -> str:
    """Post, at most once."""
    write(what, context.idempotency_key)
    return f"posted {what}"


@tool(needs_approval=True)
async def sign(what: str, context: ToolContext) -> str:
    """Sign under a key, once a person has said yes."""
    write(what, context.idempotency_key)
    return f"signed {what}"


@tool
def enlist(what: str) -> str:
    """Add a row, which an effect of the queryset writes down (`durables`)."""
    Group.objects.get_or_create(name=what)
    return f"enlisted {what}"


@tool
def weigh(what: str) -> str:
    """Weigh, in the lab (`tests.chaos.durable_lab`)."""
    raise AssertionError("the clerk has no scales")


class ChaosHelper(Think):
    """Works for the clerk."""

    workspace_tools = False

    def get_model(self) -> str:
        return "default"

    def get_tools(self) -> list[Tool]:
        return [pay]


class ChaosTeller(Think):
    """Is asked by the clerk, in its room."""

    workspace_tools = False
    listed = False

    def get_model(self) -> str:
        return "default"

    def get_tools(self) -> list[Tool]:
        return [pay]


class ChaosClerk(Think):
    """Has every kind of durable work."""

    workspace_tools = False
    code_tool = True
    sub_agents = (ChaosHelper,)
    agents: ClassVar[Any] = [AgentReference(agent=ChaosTeller, name="ask_teller", timeout_seconds=PATIENCE_SECONDS)]

    def get_model(self) -> str:
        return "default"

    def get_tools(self) -> list[Tool]:
        weighed = make_durable_tool(weigh, executor="lab", timeout_seconds=PATIENCE_SECONDS)
        return [pay, order, post, sign, enlist, weighed, self.agent_tool(ChaosHelper), self._arm()]

    def _arm(self) -> Tool:
        @tool
        async def arm(seconds: float) -> str:
            """Have a method run every so many seconds."""
            view = await self.schedule_every(seconds, self.tick, title="ticks")
            return f"armed {view.id}"

        return arm

    async def tick(self, payload: Any, occurrence: Any) -> None:
        """Write down that the occurrence came."""
        write("tick", occurrence.key, due=occurrence.due.isoformat(), schedule=occurrence.schedule_id)
