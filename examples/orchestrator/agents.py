"""An orchestrator without a chat: it gives work to agents in the background, and every page sees them work."""

from typing import Any, Literal

from chat.think import Agent, AgentRunInfo, CompletedFiber, RunningFiber, Think, client_callable

Worker = Literal["researcher", "writer"]
SHOWN = 20
"""How much of its work the page shows, the newest first."""


class Researcher(Think):
    """Finds things out, and notes them in the shared files."""

    title = "Researcher"
    icon = "search"
    listed = False  # it works for the orchestrator: people do not begin with it

    def get_model(self) -> str:
        """Let configuration choose."""
        return "default"

    def get_system_prompt(self) -> str:
        """Say who this is."""
        return "You find things out for a team. Note what you found in /notes/, and answer with a summary of it."


class Writer(Think):
    """Writes texts from the notes in the shared files."""

    title = "Writer"
    icon = "edit"
    listed = False

    def get_model(self) -> str:
        """Let configuration choose."""
        return "default"

    def get_system_prompt(self) -> str:
        """Say who this is."""
        return "You write for a team. Read /notes/ first, write your text to /drafts/, and answer with its path."


class Orchestrator(Agent):
    """Leads a researcher and a writer. It has no model and no messages: its work is fibers, which outlive any crash."""

    title = "Orchestrator"
    description = "Gives work to a researcher and a writer, who share its files."
    icon = "people"
    sub_agents = (Researcher, Writer)  # people may open the conversations of the workers
    max_concurrent_agent_tools = 4
    initial_state = {"workers": [], "work": []}

    # What pages call: each begins a fiber and returns at once with its id.

    @client_callable
    async def assign(self, agent: Worker, task: str) -> str:
        """Give a task to one worker."""
        return await self.begin("carry_out", {"agent": agent, "task": task})

    @client_callable
    async def report(self, topic: str) -> str:
        """Have a topic looked into, and then written about."""
        return await self.begin("write_report", {"topic": topic})

    @client_callable
    async def stop(self, fiber_id: str) -> bool:
        """Stop a piece of work and the worker that does it."""
        is_stopped = await self.cancel_fiber(fiber_id)
        for worker in await self.list_sub_agents():
            if worker.run is not None and worker.run.run_id.startswith(fiber_id):
                await self.abort_agent_run(worker.run.run_id, "stopped")
        await self.show()
        return is_stopped

    async def begin(self, method: str, payload: dict[str, Any]) -> str:
        """Start one of the methods below in a worker process. Committed on return."""
        fiber_id = await self.spawn_fiber(method, payload)
        await self.show()
        return fiber_id

    # What runs in the background, at least once: again from the last `stash` when its process was lost.

    async def carry_out(self, payload: dict[str, Any], fiber: RunningFiber) -> dict[str, Any]:
        """Have one worker do a task."""
        return await self.delegate(payload["agent"], payload["task"], run_id=fiber.id)

    async def write_report(self, payload: dict[str, Any], fiber: RunningFiber) -> dict[str, Any]:
        """Have a topic looked into, then written about. What was found out is not asked for again."""
        notes: Any = fiber.snapshot
        if notes is None:
            notes = await self.delegate("researcher", payload["topic"], run_id=f"{fiber.id}-notes")
            await fiber.stash(notes)
        if not notes["ok"]:
            return dict(notes)
        return await self.delegate("writer", payload["topic"], run_id=f"{fiber.id}-text")

    async def delegate(self, agent: str, task: str, *, run_id: str) -> dict[str, Any]:
        """Have a worker do a task and wait. A run of this id that there is already is waited for, not begun again."""
        outcome = await self.run_agent_tool(
            agent,
            task,
            run_id=run_id,
            workspace="shared",
            display={"name": agent.capitalize(), "task": task[:200]},
        )
        return {"ok": outcome["ok"], "text": outcome.get("summary") or outcome.get("error")}

    # What every page that shows this agent has at once: the state.

    async def show(self) -> None:
        """Put what stands in the rows into the state. Runs again after a crash, which does no harm.

        Two of these may run at once, in two processes: each looks again after it wrote, so that nothing older stays.
        """
        shown = None
        while (standing := await self.standing()) != shown:
            await self.set_state(standing)
            shown = standing

    async def standing(self) -> dict[str, Any]:
        """Read the workers and the work. What runs and is to be stopped ends as cancelled, whatever it still does."""
        workers = [
            {"agent": each.agent, "name": each.name, "status": each.status, "turns": each.turn_count}
            for each in await self.list_sub_agents()
        ]
        work = [
            {
                "id": each.id,
                "about": each.payload.get("topic") or each.payload.get("task"),
                "status": "cancelled" if each.reason == "cancelled" else each.status,
                "result": each.result,
            }
            for each in await self.list_fibers(limit=SHOWN)
            if isinstance(each.payload, dict)
        ]
        return {"workers": workers, "work": work}

    async def on_agent_tool_finish(self, run: AgentRunInfo) -> None:  # noqa: ARG002 - as it is called
        """Show the new counts."""
        await self.show()

    async def on_fiber_complete(self, context: CompletedFiber) -> None:  # noqa: ARG002 - as it is called
        """Show the result."""
        await self.show()
