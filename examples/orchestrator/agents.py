"""An orchestrator: it gives tasks to workers, keeps a registry of them, and everybody who looks sees them work."""

from typing import Any, Literal

from chat.think import AgentRunInfo, Detached, Think, Tool, client_callable, tool

Worker = Literal["researcher", "writer"]

GUIDE = """\
You lead a researcher and a writer. Give work that takes long to `delegate`, say that it has begun, and go on: its
result comes to you as a message. Use `ask` when you cannot answer without the result. `workers` lists what they do.
A worker knows nothing of this conversation: put everything it has to know into its task. All of you share the files.
"""
HOUR = 3600


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


class Orchestrator(Think):
    """Leads a researcher and a writer."""

    title = "Orchestrator"
    description = "Gives work to a researcher and a writer, who share its files."
    icon = "people"
    sub_agents = (Researcher, Writer)  # people may open the conversations of the workers
    max_concurrent_agent_tools = 4
    initial_state = {"workers": []}

    def get_model(self) -> str:
        """Let configuration choose."""
        return "default"

    def get_system_prompt(self) -> str:
        """Say how to lead."""
        return GUIDE

    def get_tools(self) -> list[Tool]:
        """Offer what a leader does: give away and go on, ask and wait, look who does what."""

        @tool(title="Delegate")
        async def delegate(agent: Worker, task: str) -> dict[str, Any]:
            """Give a task to a worker and go on at once. The result comes later, as a message.

            Args:
                agent: Who does it.
                task: What to do, with everything that has to be known.
            """
            return await self.start(agent, task)

        @tool(title="Ask")
        async def ask(agent: Worker, task: str) -> dict[str, Any]:
            """Give a task to a worker and wait for the answer.

            Args:
                agent: Who does it.
                task: What to do, with everything that has to be known.
            """
            return await self.run_agent_tool(agent, task, workspace="shared")

        @tool(title="Workers", read_only=True)
        async def workers() -> list[dict[str, Any]]:
            """List the workers: what each is asked, whether it is busy, how often it has answered."""
            return await self.registry()

        return [delegate, ask, workers]

    async def start(self, agent: str, task: str) -> dict[str, Any]:
        """Begin a run that no call waits for; its end wakes this agent. Committed on return."""
        outcome = await self.run_agent_tool(
            agent,
            task,
            workspace="shared",
            display={"name": agent.capitalize(), "task": task[:200]},
            detached=Detached(budget_seconds=HOUR, stops_child=True, wakes_parent=True),
        )
        await self.show_registry()
        return outcome

    async def registry(self) -> list[dict[str, Any]]:
        """Read the workers, the most recently active first."""
        return [
            {
                "agent": worker.agent,
                "name": worker.name,
                "status": worker.status,
                "turns": worker.turn_count,
                "outcome": (worker.run.outcome or {}).get("status") if worker.run else None,
            }
            for worker in await self.list_sub_agents()
        ]

    async def show_registry(self) -> None:
        """Put the registry into the state, which every page that shows this agent has at once."""
        await self.set_state({"workers": await self.registry()})

    async def on_agent_tool_finish(self, run: AgentRunInfo) -> None:  # noqa: ARG002 - as it is called
        """Show the new counts. Runs again after a crash, which does no harm."""
        await self.show_registry()

    @client_callable
    async def assign(self, agent: Worker, task: str) -> dict[str, Any]:
        """Let a person give a task to a worker directly: also with a model that calls no tools."""
        return await self.start(agent, task)
