"""The tool with which a model runs code over the other tools of its turn: `Think.code_tool`.

It is made of what the turn has: first of everything that the sources give, and once more when `before_turn` has added
and limited. So code cannot call what the turn does not have. The files of the workspace (`state.*`) are there under the
same condition; in patterns they are called `state`. Code may load the packages of `THINK_SANDBOX_PACKAGES`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from chat.agent.think import Think
from chat.errors import TurnConfigInvalid
from chat.turns.execution.deferring import deferral_of
from chat.turns.guarding.handed_down import Denied
from tools_app.code_tool.tool import NAME, create_execute_tool
from tools_app.core.files.workspace import Workspace
from tools_app.core.source import Source
from tools_app.core.todos import TODO_READ, TODO_WRITE
from tools_app.core.tool import Tool
from tools_app.core.tool_names import check_patterns, excludes, selects
from tools_app.core.toolset import Toolset
from tools_app.errors import ToolDeclarationInvalid
from tools_app.sandbox.conf import sandbox_settings
from tools_app.sandbox.packages import allowed

STATE: Final = "state"
OF_THE_MODEL: Final = frozenset({NAME, TODO_WRITE, TODO_READ})
"""Tools that code cannot call: a to-do list is known from the calls that stand in messages."""


def code_tool(agent: Think, tools: Toolset, workspace: Workspace | None) -> Tool | None:
    """The tool over these, without those that clients run; `None` for an agent that has none.

    Errors: `TurnConfigInvalid` for patterns that are none; `CodeInvalid` where two names are one in code, and for
    packages that are none.
    """
    if not agent.code_tool:
        return None
    return _made(agent, tools, workspace, None)


def with_code_over(
    agent: Think,
    tools: Toolset,
    code: Tool | None,
    workspace: Workspace | None,
    active: Sequence[str] | None,
    *,
    denied: Denied = (),
) -> Toolset:
    """The tools of the turn, with code over exactly these. `code`: the tool as it was made before. Errors: as above.

    `active`: the patterns that have limited the tools for this turn; `denied`: those from above.
    """
    if code is None or NAME not in tools or tools.get(NAME) is not code:
        return tools
    renewed = _made(agent, tools, workspace, active, denied)
    return Toolset([renewed if tool is code else tool for tool in tools])


def _made(
    agent: Think, tools: Toolset, workspace: Workspace | None, active: Sequence[str] | None, denied: Denied = ()
) -> Tool:
    chosen = None if isinstance(agent.code_tool, bool) else agent.code_tool
    try:
        callable_ones = tools.only(chosen)
        limits = [check_patterns(given) for given in (chosen, agent.enabled_tools, active) if given is not None]
    except ToolDeclarationInvalid as error:
        raise TurnConfigInvalid(f"code_tool of {type(agent).__name__}: {error.message}") from error
    is_denied = any(excludes(given, STATE, Source.WORKSPACE) for given in denied)
    is_kept = all(selects(given, STATE, Source.WORKSPACE) for given in limits)
    has_files = agent.workspace_tools and not is_denied and is_kept
    ours = [tool for tool in callable_ones if tool.name not in OF_THE_MODEL]
    packages = allowed(sandbox_settings.packages)
    files, unlisted = workspace if has_files else None, [tool.name for tool in deferral_of(agent, tools).found]
    made = create_execute_tool(ours, workspace=files, packages=packages, unlisted=unlisted)
    return replace(made, source=Source.WORKSPACE)
