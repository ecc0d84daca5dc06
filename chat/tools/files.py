"""Tools for files, the stores behind them, and what a store of your own is made of.

from chat.tools.files import DirectoryWorkspace, create_read_tool

class Librarian(Think):
def get_workspace(self):
return DirectoryWorkspace("/srv/library")
"""

from tools_app.core.files.operations import (
    DeleteOperations,
    EditOperations,
    FindOperations,
    GrepOperations,
    ListOperations,
    ReadOperations,
    WriteOperations,
)
from tools_app.core.files.workspace import (
    Entry,
    EntryKind,
    FileChange,
    Link,
    MakeDirectory,
    Put,
    Remove,
    Workspace,
    WorkspaceInfo,
)
from tools_app.errors import FileConflict, FileFailed
from tools_app.file_tools.finding import create_find_tool, create_list_tool
from tools_app.file_tools.naming import NameSet
from tools_app.file_tools.reading import create_read_tool
from tools_app.file_tools.searching import create_grep_tool
from tools_app.file_tools.tree_snapshot import tree_snapshot
from tools_app.file_tools.workspace_tools import create_workspace_tools
from tools_app.file_tools.writing import create_delete_tool, create_edit_tool, create_write_tool
from tools_app.workspace.archive import export_zip
from tools_app.workspace.stores.directory import DirectoryWorkspace
from tools_app.workspace.stores.memory import MemoryWorkspace
from tools_app.workspace.stores.storage import StorageWorkspace
from tools_app.workspace.unpacking import import_archive

__all__ = [
    "DeleteOperations",
    "DirectoryWorkspace",
    "EditOperations",
    "Entry",
    "EntryKind",
    "FileChange",
    "FileConflict",
    "FileFailed",
    "FindOperations",
    "GrepOperations",
    "Link",
    "ListOperations",
    "MakeDirectory",
    "MemoryWorkspace",
    "NameSet",
    "Put",
    "ReadOperations",
    "Remove",
    "StorageWorkspace",
    "Workspace",
    "WorkspaceInfo",
    "WriteOperations",
    "create_delete_tool",
    "create_edit_tool",
    "create_find_tool",
    "create_grep_tool",
    "create_list_tool",
    "create_read_tool",
    "create_workspace_tools",
    "create_write_tool",
    "export_zip",
    "import_archive",
    "tree_snapshot",
]
