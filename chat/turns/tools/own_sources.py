"""Providers of the tools of a conversation itself: its workspace, class, session, skills, client and caller."""

from collections import Counter

from chat.errors import TurnConfigInvalid
from chat.people.project_files import create_project_tools
from chat.turns.tools import caller_tools
from chat.turns.tools.client_tools import to_tools
from chat.turns.tools.providers import ToolRequest
from chat.user_code.call_hook import call_hook, user_code_boundary
from tools_app.core.tool import Tool
from tools_app.core.toolset import ToolSource, named_tools
from tools_app.errors import ToolDeclarationInvalid
from tools_app.file_tools.workspace_tools import create_workspace_tools
from tools_app.session_tools import session_tools
from tools_app.shell.tool import create_bash_tool
from tools_app.skills.tools import create_skill_tools


async def tools_of_workspace(request: ToolRequest) -> ToolSource:
    """Tools for the files of the workspace, where the agent works in one, and of the project, where it has any."""
    of_project = create_project_tools(request.project_files) if request.project_files is not None else ()
    if request.workspace is None:
        return of_project
    return [*create_workspace_tools(request.workspace), create_bash_tool(request.workspace), *of_project]


async def tools_of_agent(request: ToolRequest) -> ToolSource:
    """Tools that the agent's class gives. Errors: `TurnConfigInvalid` for what is none."""
    given: ToolSource = await call_hook(request.agent, "get_tools")
    of = f"{type(request.agent).__name__}.get_tools()"
    try:
        with user_code_boundary("get_tools", type(request.agent)):  # a generator runs now
            own = list(named_tools(given))
            return _besides(own, request.agent.agent_calls(), of) if request.agent.agents else own
    except ToolDeclarationInvalid as error:
        raise TurnConfigInvalid(f"{of}: {error.message}") from error


def _besides(own: list[Tool], calls: list[Tool], of: str) -> list[Tool]:
    """The tools of a class and the agents that it asks. Errors: `TurnConfigInvalid` where both have a name."""
    names = {tool.name for tool in own} | {name for name, count in Counter(c.name for c in calls).items() if count > 1}
    if both := sorted(names & {tool.name for tool in calls}):
        raise TurnConfigInvalid(f"{of} and `agents` both have {', '.join(both)}. Give the `AgentReference` a name.")
    return [*own, *calls]


async def tools_of_session(request: ToolRequest) -> ToolSource:
    """Tools for the memory and the texts of the session."""
    return session_tools(request.context, request.state)


async def tools_of_skills(request: ToolRequest) -> ToolSource:
    """Tools that read skills and run their scripts."""
    return create_skill_tools(request.skills, request.workspace)


async def tools_of_client(request: ToolRequest) -> ToolSource:
    """Tools that the client runs."""
    return to_tools(request.client_tools)


async def tools_of_caller(request: ToolRequest) -> ToolSource:
    """Tools that the program runs which asked for the turn."""
    return caller_tools.to_tools(request.caller_tools)
