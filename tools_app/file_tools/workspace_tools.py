"""The seven file tools of a workspace."""

from tools_app.core.files.workspace import Workspace
from tools_app.core.tool import Tool
from tools_app.file_tools.finding import create_find_tool, create_list_tool
from tools_app.file_tools.naming import NAMES, NameSet
from tools_app.file_tools.reading import create_read_tool
from tools_app.file_tools.searching import create_grep_tool
from tools_app.file_tools.writing import create_delete_tool, create_edit_tool, create_write_tool


def create_workspace_tools(workspace: Workspace, *, names: NameSet = "short") -> tuple[Tool, ...]:
    """Make the tools by which a model works on the files of a workspace: read, write, edit, list, find, grep, delete.

    `names`: the convention of their names, which models may know from elsewhere.
    """
    named = NAMES[names]
    return (
        create_read_tool(workspace, name=named["read"]),
        create_write_tool(workspace, name=named["write"]),
        create_edit_tool(workspace, name=named["edit"]),
        create_list_tool(workspace, name=named["list"]),
        create_find_tool(workspace, name=named["find"]),
        create_grep_tool(workspace, name=named["grep"]),
        create_delete_tool(workspace, name=named["delete"]),
    )
