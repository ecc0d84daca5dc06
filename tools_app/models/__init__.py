"""Tables of tools: calls and questions, workspaces, actions, code, extensions, MCP servers, the guard, rules."""

from tools_app.models.actions import ActionRecord
from tools_app.models.calls import ApprovalEvent, ApprovalEventKind, ToolCallRecord
from tools_app.models.code_runs import Execution, ExecutionCall
from tools_app.models.extensions import BannedSource, Extension, ExtensionCall, ExtensionVersion
from tools_app.models.guard import Guard, GuardEvent
from tools_app.models.mcp import McpServer, McpSignIn
from tools_app.models.permissions import PermissionRule
from tools_app.models.workspaces import (
    FileBackup,
    StoredWorkspace,
    WorkspaceAttachment,
    WorkspaceEntry,
    new_workspace_id,
)

__all__ = [
    "ActionRecord",
    "ApprovalEvent",
    "ApprovalEventKind",
    "BannedSource",
    "Execution",
    "ExecutionCall",
    "Extension",
    "ExtensionCall",
    "ExtensionVersion",
    "FileBackup",
    "Guard",
    "GuardEvent",
    "McpServer",
    "McpSignIn",
    "PermissionRule",
    "StoredWorkspace",
    "ToolCallRecord",
    "WorkspaceAttachment",
    "WorkspaceEntry",
    "new_workspace_id",
]
