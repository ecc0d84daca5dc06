"""An agent without a chat that works in the background, and one that chats below it, for the tests of it."""

from typing import Any

from chat.think import Agent, AgentRunInfo, CompletedFiber, LostFiber, Occurrence, RunningFiber, client_callable
from tests.db.chat.turns.agents.everyday import Plain
from tests.db.chat.turns.agents.fibering import kill_here
from thinkproject.kernel.aio import db

HEARD: list[Any] = []
"""What its methods and hooks were given, in order."""


class PinHelper(Plain):
    """Works for the agent without a chat."""


class PinBoard(Agent):
    """Does everything in the background; no person talks to it."""

    initial_state = {"done": 0}
    sub_agents = (PinHelper,)
    max_concurrent_agent_tools = 2

    async def work(self, payload: Any, fiber: RunningFiber) -> Any:
        """Fail as often as the payload says, or lose its worker once."""
        HEARD.append(("work", payload, fiber.retry_count))
        if "dies" in payload:
            await fiber.stash({"retry": fiber.retry_count})
        if "dies" in payload and fiber.retry_count == 0:
            await db(kill_here)
        if fiber.retry_count < payload.get("failures", 0):
            raise ValueError("not yet")
        return payload

    async def compact(self, payload: Any) -> Any:
        """Bear the name of a method that only agents with a chat have."""
        HEARD.append(("compact", payload))
        return payload

    def tick(self, payload: Any, occurrence: Occurrence) -> None:
        """Be called by a schedule."""
        HEARD.append(("tick", payload, occurrence.is_test))

    @client_callable(name="addDone")
    async def add_done(self, count: int) -> int:
        """Be called by clients, and by their schedules."""
        state: Any = await self.get_state()
        await self.set_state({"done": state["done"] + count})
        return int(state["done"]) + count

    @client_callable
    async def lines(self) -> Any:
        """Yield."""
        yield "first"

    async def lead(self, payload: Any) -> Any:
        """Have another agent work, from within a fiber."""
        return await self.run_agent_tool(PinHelper, payload)

    async def connect(self, payload: Any) -> str:
        """Add an MCP server, from within a fiber."""
        return (await self.add_mcp_server("odd", command=payload)).state.value

    def on_fiber_complete(self, context: CompletedFiber) -> None:
        """Note it."""
        HEARD.append(("complete", context.method, context.result))

    async def on_fiber_recovered(self, fiber: LostFiber) -> None:
        """Note it, and go on."""
        HEARD.append(("lost", fiber.method, fiber.snapshot))
        await super().on_fiber_recovered(fiber)

    def on_agent_tool_finish(self, run: AgentRunInfo) -> None:
        """Note it."""
        HEARD.append(("run", run.run_id, (run.outcome or {}).get("status")))
