"""Sub-agents of an agent: open, stop, remove and list them, and have them work as tools.

`Think` and `AgentHandle` have the same methods over the same operations. Nothing here touches the database.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypedDict, cast

from typing_extensions import Unpack

from chat.agent.abilities.runs import (
    AgentRunInfo,
    Detached,
    McpUse,
    RunRequest,
    SubAgentInfo,
    WorkspaceUse,
)
from chat.agent.appearance import appearance_of
from chat.agent.base import Agent
from chat.agent.registry import get_agent_class
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.tool import NAME_PATTERN, ApprovalRule, Tool, ToolContext
from tools_app.errors import ToolDeclarationInvalid

if TYPE_CHECKING:
    from pydantic import BaseModel

AgentName: TypeAlias = type[Agent] | str
"""A class, or the name of its route."""

_TASK: JSONObject = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What to do, with everything that has to be known."}},
    "required": ["task"],
    "additionalProperties": False,
}


class RunOptions(TypedDict, total=False):
    """Options of a run, given by keyword. See `run_agent_tool`."""

    display: JSONObject | None
    display_order: int
    detached: bool | Detached
    workspace: WorkspaceUse
    mcp: McpUse


class SubAgentOperations(Protocol):
    """The operations on the sub-agents of one instance, as the methods call them."""

    def open_sub_agent(self, route: str, name: str) -> Any:
        """A handle of a sub-agent."""
        ...

    def open_parent(self) -> Any:
        """A handle of the parent; `None` for a root."""
        ...

    async def abort_sub_agent(self, route: str, name: str, reason: str) -> bool:
        """Stop a sub-agent and all below it; false when nothing ran."""
        ...

    async def delete_sub_agent(self, route: str, name: str) -> bool:
        """Stop and remove one; false when there is none."""
        ...

    async def has_sub_agent(self, route: str, name: str) -> bool:
        """Whether there is one."""
        ...

    async def list_sub_agents(self, route: str) -> list[SubAgentInfo]:
        """Read the registry, of one class or of all."""
        ...

    async def run_agent(self, request: RunRequest) -> JSONObject:
        """Start a run, or find it, and wait for its end unless it is detached."""
        ...

    async def find_run(self, run_id: str) -> AgentRunInfo | None:
        """Read a run."""
        ...

    async def abort_run(self, run_id: str, reason: str) -> bool:
        """Stop a run; false when it has ended or is unknown."""
        ...

    async def clear_runs(self, older_than_seconds: float) -> int:
        """Remove runs that have ended, and their children."""
        ...

    def report_progress(self, fraction: float, message: str) -> None:
        """Show how far this agent's run is."""
        ...

    def report_milestone(self, name: str, data: JSONObject) -> None:
        """Keep a milestone in the answer."""
        ...


class SubAgentMethods:
    """Sub-agents and runs. See `docs/howto/sub-agents.md`."""

    host: Any

    @property
    def _sub_agents(self) -> SubAgentOperations:
        return cast("SubAgentOperations", self.host)

    def sub_agent(self, agent: AgentName, name: str) -> Any:
        """Give a sub-agent of this instance as an `AgentHandle`; its first message makes it.

        Idempotent: the same class and name is the same sub-agent. Code of the server asks no `sub_agents`. Errors:
        `AgentNotFound` for an agent that is not served, an impossible name, and one that lies too deep.
        """
        return self._sub_agents.open_sub_agent(_route(agent), name)

    @property
    def parent_agent(self) -> Any:
        """The instance above this one as an `AgentHandle`; `None` for a root."""
        return self._sub_agents.open_parent()

    async def abort_sub_agent(self, agent: AgentName, name: str, reason: str = "") -> bool:
        """Stop what a sub-agent does, and what all below it do; everything stays stored. False when nothing ran.

        Durability: committed when this returns. Runs that it worked for end as aborted, with `reason`.
        """
        return await self._sub_agents.abort_sub_agent(_route(agent), name, reason)

    async def delete_sub_agent(self, agent: AgentName, name: str) -> bool:
        """Stop a sub-agent and remove it with everything that is its own; false when there is none."""
        return await self._sub_agents.delete_sub_agent(_route(agent), name)

    async def has_sub_agent(self, agent: AgentName, name: str) -> bool:
        """Whether there is a sub-agent of this class and name."""
        return await self._sub_agents.has_sub_agent(_route(agent), name)

    async def list_sub_agents(self, agent: AgentName | None = None) -> list[SubAgentInfo]:
        """Read the direct sub-agents, the most recently active first, with status and counts.

        At most 500. The number of queries is fixed.
        """
        return await self._sub_agents.list_sub_agents("" if agent is None else _route(agent))

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
        "status", "error", "retryable", "reason"?, "childStillRunning"?}`; with `detached` at once, as `running`.
        Durability: the run is stored before this waits. Within an async tool of a turn the turn is parked meanwhile and
        holds no worker; the tool runs again from its beginning and finds the run. Elsewhere the caller waits.
        Errors: `AgentNotFound`; `InputInvalid` for a run id that no sub-agent can be called by; `TurnConflict` for one
        that belongs to another agent. What goes wrong later is an outcome.
        """
        detached = options.get("detached", False)
        return await self._sub_agents.run_agent(
            RunRequest(
                agent=_route(agent),
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
        return await self._sub_agents.find_run(run_id)

    async def abort_agent_run(self, run_id: str, reason: str = "") -> bool:
        """Stop a run of this instance and its child; false when it has ended or is unknown. Committed on return."""
        return await self._sub_agents.abort_run(run_id, reason)

    async def clear_agent_runs(self, *, older_than_seconds: float = 0.0) -> int:
        """Remove the runs of this instance that have ended so long ago, with their children; returns how many.

        Results of calls stay in the conversation. Runs are kept until this, or until the conversation is deleted; their
        children count towards `THINK_INSTANCES_PER_USER`. At most 200 at a time.
        """
        return await self._sub_agents.clear_runs(older_than_seconds)


class AgentToolOptions(RunOptions, total=False):
    """Options of `agent_tool`, given by keyword."""

    name: str
    display_name: str
    icon: str
    needs_approval: ApprovalRule
    read_only: bool
    open_world: bool


class SubAgentTools(SubAgentMethods):
    """The part of an agent in runs: agents as its tools, what it reports as a child, what it learns as a parent."""

    max_concurrent_agent_tools: ClassVar[int | None] = None
    """Runs of agents that one conversation may have under way; a further one fails. `None` leaves it to the limit of
    the user (`THINK_RUNS_PER_USER`)."""

    allows_recursion: ClassVar[bool] = False
    """Whether an agent of this class may work for one that lies below another of the same class. Refused by default:
    an agent that delegates to itself has no end."""

    def agent_tool(
        self,
        agent: AgentName,
        *,
        description: str = "",
        input_schema: "type[BaseModel] | JSONObject | None" = None,
        **options: Unpack[AgentToolOptions],
    ) -> Tool:
        """Make another agent a tool of this one, for `get_tools()`. Its calls are runs (`run_agent_tool`).

        `description`: for the model; the agent's own by default. `input_schema`: a pydantic class or a JSON Schema; one
        text, `task`, by default. `display_name` and `icon`: for people. `read_only` and `open_world`: as of `tool`, of
        everything that the child may do; a conversation that holds text of strangers asks a person about others.
        Errors: `AgentNotFound`; `ToolDeclarationInvalid` for a name that providers refuse.
        """
        agent_class = get_agent_class(_route(agent))
        shown = appearance_of(agent_class)
        name = options.get("name") or agent_class.route_name().replace("-", "_")
        title = options.get("display_name") or shown.title
        display: JSONObject = {"name": title, "icon": options.get("icon") or shown.icon}
        run_options: RunOptions = {"display": {**display, **(options.get("display") or {})}}
        for key in ("display_order", "detached", "workspace", "mcp"):
            if key in options:
                run_options[key] = options[key]

        async def delegate(input: JSONObject, context: ToolContext) -> JSONObject:  # noqa: A002 - as tools get it
            return await self.run_agent_tool(agent, input, parent_tool_call_id=context.call_id, **run_options)

        return Tool(
            name=_checked(name),
            description=description or shown.description or f"Have {title} do something.",
            input_schema=_schema(input_schema),
            function=delegate,
            context_parameter="context",
            needs_approval=options.get("needs_approval", False),
            title=title,
            read_only=options.get("read_only", False),
            open_world=options.get("open_world", False),
        )

    def report_progress(self, fraction: float, message: str = "") -> None:
        """Show how far this agent is, from 0 to 1: to who sees its conversation, and to its parent where it has a run.

        From any thread, at any rate: at most one in 200 ms is sent, and one of 1 or more always. Not stored in the
        answer. Outside of a turn it does nothing.
        """
        self._sub_agents.report_progress(fraction, message)

    def milestone(self, name: str, data: JSONObject | None = None) -> None:
        """Note that something was reached: a part of the answer, stored with it, and an event of the run.

        A milestone of the same name replaces the earlier one of this answer, so a call that runs again after a crash
        notes it once. From any thread. Outside of a turn it does nothing.
        """
        self._sub_agents.report_milestone(name, data or {})

    def on_agent_tool_finish(self, run: AgentRunInfo) -> Any:
        """Run after a run of another agent for this one has ended, at least once. In a worker, outside of a turn."""


def _route(agent: AgentName) -> str:
    return agent if isinstance(agent, str) else agent.route_name()


def _checked(name: str) -> str:
    if not NAME_PATTERN.match(name):
        raise ToolDeclarationInvalid(f"{name!r} is not a tool name: expected 1 to 64 letters, digits, '_' or '-'")
    return name


def _schema(given: "type[BaseModel] | JSONObject | None") -> JSONObject:
    if given is None:
        return _TASK
    if isinstance(given, Mapping):
        return dict(given)
    schema: JSONObject = given.model_json_schema()
    return schema
