"""Agents as tools of an agent that chats, and what it reports while it works for another one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import Unpack

from chat.agent.appearance import appearance_of
from chat.agent.methods.sub_agents import AgentName, RunOptions, SubAgentDeclarations, route_of
from chat.agent.registry import get_agent_class
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.tool import ApprovalRule, Tool, ToolContext, checked_name

if TYPE_CHECKING:
    from pydantic import BaseModel

_TASK: JSONObject = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What to do, with everything that has to be known."}},
    "required": ["task"],
    "additionalProperties": False,
}


class AgentToolOptions(RunOptions, total=False):
    """Options of `agent_tool`, given by keyword."""

    name: str
    display_name: str
    icon: str
    needs_approval: ApprovalRule
    read_only: bool
    open_world: bool


class SubAgentTools(SubAgentDeclarations):
    """The part of an agent that chats: agents as its tools, and what it reports as a child."""

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
        agent_class = get_agent_class(route_of(agent))
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
            name=checked_name(name),
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
        self.instance.sub_agents.report_progress(fraction, message)

    def milestone(self, name: str, data: JSONObject | None = None) -> None:
        """Note that something was reached: a part of the answer, stored with it, and an event of the run.

        A milestone of the same name replaces the earlier one of this answer, so a call that runs again after a crash
        notes it once. From any thread. Outside of a turn it does nothing.
        """
        self.instance.sub_agents.report_milestone(name, data or {})


def _schema(given: "type[BaseModel] | JSONObject | None") -> JSONObject:
    if given is None:
        return _TASK
    if isinstance(given, Mapping):
        return dict(given)
    schema: JSONObject = given.model_json_schema()
    return schema
