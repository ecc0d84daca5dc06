"""The workspace that an agent works in."""

from typing import Any

from chat.agent.base import Agent
from chat.agent.think import Think
from chat.errors import WorkspaceMissing
from chat.user_code.call_hook import AgentCodeFailed, call_hook
from tools_app.core.files.workspace import Workspace
from tools_app.workspace.stores.database import DatabaseWorkspace


async def workspace_of(agent: Agent) -> Workspace:
    """The workspace of an agent object: what its `get_workspace` gives, or the instance's own.

    Of one in the database, files are kept as they were before the turn that the object works for.
    Errors: `WorkspaceMissing` for an agent that has none; `AgentCodeFailed`.
    """
    found: Any = await call_hook(agent, "get_workspace") if isinstance(agent, Think) else None
    if found is None:
        return agent.host.open_workspace()
    if found is False:
        raise WorkspaceMissing
    if not hasattr(found, "read_dir"):
        raise AgentCodeFailed(TypeError(f"get_workspace() returned {found!r}, which is no workspace"), "get_workspace")
    workspace: Workspace = found.in_turn(agent.host.turn_id) if isinstance(found, DatabaseWorkspace) else found
    return workspace
