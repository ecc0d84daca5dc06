"""The workspace that an agent works in."""

import logging
from typing import Any

from chat.agent.base import Agent
from chat.agent.think import Think
from chat.errors import WorkspaceMissing
from chat.user_code.call_hook import AgentCodeFailed, call_hook, user_code_boundary
from tools_app.core.files.workspace import Workspace
from tools_app.core.guard.reach import held_back
from tools_app.core.guard.rules import SeenText
from tools_app.errors import FileFailed
from tools_app.file_tools.top_listing import MAX_SHOWN, NO_WORKSPACE, top_listing
from tools_app.file_tools.tree_snapshot import tree_snapshot
from tools_app.workspace.undo import KEEPING

logger = logging.getLogger(__name__)


async def workspace_of(agent: Agent) -> Workspace:
    """The workspace of an agent object: what its `get_workspace` gives, or the instance's own.

    Of one in the database or on the disk, files are kept as they were before the turn that the object works for.
    Errors: `WorkspaceMissing` for an agent that has none; `AgentCodeFailed`.
    """
    found: Any = await call_hook(agent, "get_workspace") if isinstance(agent, Think) else None
    if found is None:
        return agent.instance.open_workspace()
    if found is False:
        raise WorkspaceMissing
    workspace: Workspace = found.in_turn(agent.instance.turn_id) if isinstance(found, KEEPING) else found
    return workspace


async def files_in_prompt(agent: Think, workspace: Workspace | None) -> tuple[str, list[SeenText]]:
    """The files of the workspace below a system prompt; empty unless the class asks for them.

    Where it asks for the root alone, a sentence says that there is no workspace, and what cannot be read is left out. A
    tree of no workspace is empty.

    With it the names of strangers that are in it, which the caller notes. Files that cannot be read do not stop a turn:
    the text mentions it, and the log has the reason.
    """
    names: list[SeenText] = []
    if agent.workspace_in_prompt == "top":
        return await _root_in_prompt(workspace)
    if workspace is None or not agent.workspace_in_prompt:
        return "", names
    try:
        with user_code_boundary("get_workspace"), held_back() as names:  # a store may be the agent's own
            tree = await tree_snapshot(workspace)
    except (FileFailed, AgentCodeFailed) as error:
        logger.warning("no tree for the prompt", extra={"action": "workspace_not_shown", "code": error.code})
        tree = "(cannot be read now)"
    tree = tree.replace("</", "< /")  # names are not ours: none ends the tag
    return f"\n\n<files>\nThe workspace as this turn began:\n{tree}\n</files>", names


async def _root_in_prompt(workspace: Workspace | None) -> tuple[str, list[SeenText]]:
    if workspace is None:
        return f"\n\n{NO_WORKSPACE}", []
    names: list[SeenText] = []
    try:
        with user_code_boundary("get_workspace"), held_back() as names:
            entries = await workspace.read_dir("/", limit=MAX_SHOWN + 1)
    except (FileFailed, AgentCodeFailed) as error:
        logger.warning("no files for the prompt", extra={"action": "workspace_not_shown", "code": error.code})
        return "", names
    return f"\n\n{top_listing(entries[:MAX_SHOWN], has_more=len(entries) > MAX_SHOWN)}", names
