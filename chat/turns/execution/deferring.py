"""The tools of a turn as its agent has them declared to the model: one by one, or found through two others."""

from collections.abc import Collection

from chat.agent.think import Think
from chat.errors import TurnConfigInvalid
from tools_app.core.deferral import Deferral, defer
from tools_app.core.tool_names import check_patterns
from tools_app.core.toolset import Toolset
from tools_app.errors import ToolDeclarationInvalid


def deferral_of(agent: Think, tools: Toolset, *, keep: Collection[str] = ()) -> Deferral:
    """Divide the tools. `keep`: names that are declared in any case. Errors: `TurnConfigInvalid` for no patterns."""
    try:
        patterns = check_patterns(agent.searched_tools)
    except ToolDeclarationInvalid as error:
        raise TurnConfigInvalid(f"searched_tools of {type(agent).__name__}: {error.message}") from error
    return defer(tools, patterns, agent.max_declared_tools, keep=keep)
