"""Sub-agents of an agent: open, stop, remove and list them, and have them work as tools.

Agents and `AgentHandle` have the same methods over the same operations. Nothing here touches the database.
"""

from typing import Any, ClassVar, TypeAlias, TypedDict

from typing_extensions import Unpack

from chat.agent.ports import InstancePort
from chat.agent.values.runs import (
    AgentRunInfo,
    Detached,
    McpUse,
    RunRequest,
    SubAgentInfo,
    WorkspaceUse,
)
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

AgentName: TypeAlias = type[Any] | str
"""A class, or the name of its route."""


class RunOptions(TypedDict, total=False):
    """Options of a run, given by keyword. See `run_agent_tool`."""

    display: JSONObject | None
    display_order: int
    detached: bool | Detached
    workspace: WorkspaceUse
    mcp: McpUse


class SubAgentMethods:
    """Sub-agents and runs. See `docs/howto/sub-agents.md`."""

    instance: InstancePort

    def sub_agent(self, agent: AgentName, name: str) -> Any:
        """Give a sub-agent of this instance as an `AgentHandle`; its first message makes it.

        Idempotent: the same class and name is the same sub-agent. Code of the server asks no `sub_agents`. Errors:
        `AgentNotFound` for an agent that is not served, an impossible name, and one that lies too deep.
        """
        return self.instance.sub_agents.open(route_of(agent), name)

    @property
    def parent_agent(self) -> Any:
        """The instance above this one as an `AgentHandle`; `None` for a root."""
        return self.instance.sub_agents.open_parent()

    async def abort_sub_agent(self, agent: AgentName, name: str, reason: str = "") -> bool:
        """Stop what a sub-agent does, and what all below it do; everything stays stored. False when nothing ran.

        Durability: committed when this returns. Runs that it worked for end as aborted, with `reason`.
        """
        return await self.instance.sub_agents.abort(route_of(agent), name, reason)

    async def delete_sub_agent(self, agent: AgentName, name: str) -> bool:
        """Stop a sub-agent and remove it with everything that is its own; false when there is none."""
        return await self.instance.sub_agents.delete(route_of(agent), name)

    async def has_sub_agent(self, agent: AgentName, name: str) -> bool:
        """Whether there is a sub-agent of this class and name."""
        return await self.instance.sub_agents.has(route_of(agent), name)

    async def list_sub_agents(self, agent: AgentName | None = None) -> list[SubAgentInfo]:
        """Read the direct sub-agents, the most recently active first, with status and counts.

        At most 500. The number of queries is fixed.
        """
        return await self.instance.sub_agents.list_all("" if agent is None else route_of(agent))

    async def run_agent_tool(
        self,
        agent: AgentName,
        input: JSONValue,  # noqa: A002 - the name that those who know agents as tools look for
        *,
        run_id: str | None = None,
        parent_tool_call_id: str = "",
        **options: Unpack[RunOptions],
    ) -> JSONObject:
        """Have another agent work on something, in a conversation of its own below this one, and wait for its answer.

        `input`: a text, or JSON. `run_id`: the caller's own; the same one again gives the same run, whose child has
        this name. Within a tool it follows from the call. `display`: `name`, `icon`, … as clients show it.
        `workspace="shared"`: the child works on the files of this instance; `mcp="shared"`: it has its MCP servers.
        Returns `{"ok": true, "runId", "status": "completed", "summary", "output"?}`, else `{"ok": false, "runId",
        "status", "error", "retryable", "reason"?, "summary"?, "childStillRunning"?}`; with `detached` at once,
        as `running`.
        Durability: the run is stored before this waits. Within an async tool of a turn the turn is parked meanwhile and
        holds no worker; the tool runs again from its beginning and finds the run. Elsewhere the caller waits.
        Errors: `AgentNotFound`; `InputInvalid` for a run id that no sub-agent can be called by; `TurnConflict` for one
        that belongs to another agent. What goes wrong later is an outcome.
        """
        detached = options.get("detached", False)
        return await self.instance.sub_agents.run(
            RunRequest(
                agent=route_of(agent),
                input=input,
                run_id=run_id or "",
                call_id=parent_tool_call_id,
                display=options.get("display"),
                display_order=options.get("display_order", 0),
                detached=(Detached() if detached else None) if isinstance(detached, bool) else detached,
                workspace=options.get("workspace", "own"),
                mcp=options.get("mcp", "own"),
            )
        )

    async def get_agent_run(self, run_id: str) -> AgentRunInfo | None:
        """Read a run of this instance by its id; `None` when there is none."""
        return await self.instance.sub_agents.find_run(run_id)

    async def abort_agent_run(self, run_id: str, reason: str = "") -> bool:
        """Stop a run of this instance and its child; false when it has ended or is unknown. Committed on return."""
        return await self.instance.sub_agents.abort_run(run_id, reason)

    async def clear_agent_runs(self, *, older_than_seconds: float = 0.0) -> int:
        """Remove the runs of this instance that have ended so long ago, with their children; returns how many.

        Results of calls stay in the conversation. Runs are kept until this, or until the conversation is deleted; their
        children count towards `THINK_INSTANCES_PER_USER`. At most 200 at a time.
        """
        return await self.instance.sub_agents.clear_runs(older_than_seconds)


class SubAgentDeclarations(SubAgentMethods):
    """The declarations of a class about the runs that it starts."""

    max_concurrent_agent_tools: ClassVar[int | None] = None
    """Runs of agents that one instance may have under way; a further one fails. `None` leaves it to the limit of
    the user (`THINK_RUNS_PER_USER`)."""

    def on_agent_tool_finish(self, run: AgentRunInfo) -> Any:
        """Run after a run of another agent for this one has ended, at least once. In a worker, outside of a turn."""


def route_of(agent: AgentName) -> str:
    """The route name of an agent."""
    return agent if isinstance(agent, str) else agent.route_name()
