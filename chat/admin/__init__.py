"""Django admin of the chat; importing this package registers its models."""

from chat.admin import access, files, instances, lower_apps, streams, turns
from chat.admin.tools import executions, extensions, guards, mcp, schedules, workspace_files, workspaces

__all__ = [
    "access",
    "executions",
    "extensions",
    "files",
    "guards",
    "instances",
    "lower_apps",
    "mcp",
    "schedules",
    "streams",
    "turns",
    "workspace_files",
    "workspaces",
]
