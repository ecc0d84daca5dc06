"""The files of a project: a stored workspace whose scope is the project itself.

Conversations do not have it attached one by one. That they are in the project is one fact, in one column; attachments
beside it would have to follow every move, fork and restore, and the workspace would go with the last conversation that
was deleted. Models read these files and do not change them: several conversations may run at once, and what one of them
wrote would change what the others are asked about.
"""

from dataclasses import replace
from typing import Any, Final

from django.db import transaction

from chat.people.projects import hold_project
from tools_app.core.files.workspace import Workspace
from tools_app.core.guard.reach import held_back, note_here
from tools_app.core.tool import Tool
from tools_app.file_tools.finding import create_find_tool
from tools_app.file_tools.reading import create_read_tool
from tools_app.file_tools.searching import create_grep_tool
from tools_app.workspace.services import ensure_for_scope, open_for_scope, open_workspace
from tools_app.workspace.stores.database import DatabaseWorkspace

READ: Final = "read_project_file"
FIND: Final = "find_project_files"
GREP: Final = "grep_project_files"


def files_of_project(project_id: str, owner_id: Any) -> DatabaseWorkspace:
    """The files of a project, to be read. No query; whether the person may was decided by the caller."""
    return open_for_scope(project_id, owner_id)


@transaction.atomic
def writable_files(user_id: Any, project_id: str) -> DatabaseWorkspace:
    """The files of a project, to be changed. Once the project is gone, a write is an error and leaves nothing.

    Errors: `ProjectNotFound`, also for another's.
    """
    hold_project(user_id, project_id)
    return open_workspace(ensure_for_scope(project_id, user_id).pk)


def create_project_tools(files: Workspace) -> tuple[Tool, ...]:
    """Make the tools by which a model reads the files of a project: find, grep, read. None of them writes."""
    tools = (
        create_find_tool(files, name=FIND),
        create_grep_tool(files, name=GREP),
        create_read_tool(files, name=READ),
    )
    return tuple(_of_project(tool) for tool in tools)


def _of_project(tool: Tool) -> Tool:
    """The tool, with words of its own; texts of strangers are named so that no file of the conversation is meant."""
    run = tool.function
    assert run is not None, "tools of files run here"

    async def read(**given: object) -> object:
        with held_back() as seen:
            result = await run(**given)
        for text in seen:
            note_here(text.origin, f"project: {text.source}")
        return result

    words = f"In the files of the project. {tool.description}"
    return replace(tool, function=read, description=words, title=f"{tool.title} of the project")
