"""The workspace that an agent works in."""

import logging
from collections.abc import Awaitable, Sequence
from typing import Any, Final

from chat.agent.base import Agent
from chat.agent.think import Think
from chat.errors import WorkspaceMissing
from chat.user_code.call_hook import AgentCodeFailed, call_hook, user_code_boundary
from tools_app.core.files.workspace import EntryKind, Workspace
from tools_app.core.guard.reach import held_back
from tools_app.core.guard.rules import SeenText
from tools_app.errors import FileFailed
from tools_app.file_tools.top_listing import MAX_SHOWN, NO_WORKSPACE, top_listing
from tools_app.file_tools.tree_snapshot import tree_snapshot
from tools_app.workspace.undo import KEEPING

logger = logging.getLogger(__name__)

INSTRUCTIONS_END: Final = "\n</instructions>"
"""The end of the instructions in a prompt; what follows are names of files."""

MAX_INSTRUCTION_BYTES: Final = 16 * 1024
"""Of a file of instructions, about 4,000 tokens: each call of the model has them."""


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
    """The part of a system prompt that the workspace adds, as the class asks: its instructions, then its tree.

    The instructions change seldom, so they come first. With it the texts of strangers that are in it, which the caller
    notes. Files that cannot be read do not stop a turn: the text mentions it, and the log has the reason. Where the
    class asks for the root alone, a sentence says that there is no workspace, and one that cannot be read is left out.
    """
    shown, seen = "", []
    is_top = agent.workspace_in_prompt == "top"
    if workspace is None:
        return f"\n\n{NO_WORKSPACE}" if is_top else "", []
    if agent.instruction_files:
        text, found = await _read(
            _instructions(workspace, agent.instruction_files), missing="no instructions for the prompt"
        )
        shown, seen = f"\n\n<instructions>\n{text}{INSTRUCTIONS_END}" if text else "", found
    if is_top:
        text, found = await _read(_root(workspace), missing="no files for the prompt", unread="")
        shown += f"\n\n{text}" if text else ""
        seen += found
    elif agent.workspace_in_prompt:
        text, found = await _read(tree_snapshot(workspace), missing="no tree for the prompt")
        shown += f"\n\n<files>\nThe workspace as this turn began:\n{text}\n</files>"
        seen += found
    return shown, seen


async def _read(
    reading: Awaitable[str], *, missing: str, unread: str = "(cannot be read now)"
) -> tuple[str, list[SeenText]]:
    """A text of the workspace, and what of it is by strangers. Where it cannot be read, the log has `missing`."""
    seen: list[SeenText] = []
    try:
        with user_code_boundary("get_workspace"), held_back() as seen:  # a store may be the agent's own
            text = await reading
    except (FileFailed, AgentCodeFailed) as error:
        logger.warning(missing, extra={"action": "workspace_not_shown", "code": error.code})
        text = unread
    return text.replace("</", "< /"), seen  # the text is not ours: none of it ends the tag


async def _root(workspace: Workspace) -> str:
    entries = await workspace.read_dir("/", limit=MAX_SHOWN + 1)
    return top_listing(entries[:MAX_SHOWN], has_more=len(entries) > MAX_SHOWN)


async def _instructions(workspace: Workspace, paths: Sequence[str]) -> str:
    """The text of the first of these files that is there, under its name; empty without any."""
    for path in paths:
        entry = await workspace.stat(f"/{path.lstrip('/')}")
        if entry is None or entry.kind is EntryKind.DIRECTORY:
            continue
        data = b""
        async for piece in workspace.read_stream(entry.path):
            data += piece
            if len(data) > MAX_INSTRUCTION_BYTES:
                break
        text = data[:MAX_INSTRUCTION_BYTES].decode(errors="replace").strip()
        cut = "\n[The rest is left out: read the file.]" if len(data) > MAX_INSTRUCTION_BYTES else ""
        return f"From {entry.path} of the workspace:\n{text}{cut}"
    return ""
